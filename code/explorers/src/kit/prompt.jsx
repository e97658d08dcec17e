/** The prompt box: a text of known words, with suggestions, ids, and a sentence for what is unknown. */

import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { splitWords } from "../engine/index.js";
import { useId } from "./ids.js";
import { memo } from "./memo.jsx";

/**
 * Return the ids of a prompt, or what is wrong with it.
 * @param {string} text
 * @param {import("../engine/index.js").Vocabulary} vocabulary
 * @param {number} max tokens that fit
 * @returns {{ids?: number[], error?: string}}
 */
export function readPrompt(text, vocabulary, max) {
  try {
    const ids = vocabulary.encode(text);
    if (ids.length === 0) return { error: "Write at least one word; the words it knows are below." };
    if (ids.length > max) return { error: `${ids.length} tokens do not fit: the model sees ${max} at most.` };
    return { ids };
  } catch (error) {
    return { error: error.message };
  }
}

/**
 * Return the last readable prompt {text, ids} of a state's text, and the sentence of an unreadable one.
 * @param {string} text
 * @param {import("../engine/index.js").Vocabulary} vocabulary
 * @param {number} max
 * @param {string} standard a text that can be read, for the beginning
 * @param {typeof readPrompt} [read] reads texts that are no prompts
 */
export function usePrompt(text, vocabulary, max, standard, read = readPrompt) {
  const last = useRef(null);
  const now = useMemo(() => read(text, vocabulary, max), [text, vocabulary, max, read]);
  if (now.ids && String(now.ids) !== String(last.current?.ids)) last.current = { text, ids: now.ids };
  if (!last.current) last.current = firstReadable(standard, vocabulary, max, read);
  return { ...last.current, error: now.error };
}

/** A model of the reader's own may not know the standard prompt: then its first word will do. */
function firstReadable(standard, vocabulary, max, read) {
  const { ids } = read(standard, vocabulary, max);
  return ids ? { text: standard, ids } : { text: vocabulary.word(0), ids: [0] };
}

/**
 * The box. It calls `onChange` with a text only once that can be read.
 * @param {object} props
 * @param {string} props.value the text that holds
 * @param {string} [props.error] a sentence about a text that came from elsewhere
 * @param {function(string): void} props.onChange
 * @param {import("../engine/index.js").Vocabulary} props.vocabulary
 * @param {number} props.max
 * @param {string} [props.label]
 * @param {typeof readPrompt} [props.read] reads texts that are no prompts
 */
export function Prompt({ value, error, onChange, vocabulary, max, label = "Prompt", read = readPrompt }) {
  const [typed, setTyped] = useState(value);
  const [problem, setProblem] = useState(error);
  const id = useId();
  useLayoutEffect(() => { // at once: later it would undo what is typed meanwhile
    setTyped(value);
    setProblem(error);
  }, [value, error]);
  const take = (text) => {
    setTyped(text);
    const { ids, error } = read(text, vocabulary, max);
    setProblem(error);
    if (ids) onChange(text);
  };
  const words = splitWords(typed);
  return (
    <div class="gfx-prompt">
      <label for={id}>{label}</label>
      <input
        id={id} type="text" value={typed} list={`${id}-words`} autocomplete="off" autocapitalize="none"
        spellcheck={false} dir="auto" maxLength={400} aria-invalid={Boolean(problem)}
        aria-describedby={`${id}-problem`} onInput={(event) => take(event.currentTarget.value)}
      />
      <datalist id={`${id}-words`}>
        {suggestions(typed, vocabulary).map((text) => <option key={text} value={text} />)}
      </datalist>
      <p class="gfx-error" id={`${id}-problem`} role="alert">{problem}</p>
      <details class="gfx-words">
        <summary>The {vocabulary.size} tokens it knows</summary>
        <div class="gfx-chips">
          {vocabulary.words.map((word) => (
            <button key={word} type="button" class="gfx-chip" onClick={() => take([...words, word].join(" "))}>
              {word}
            </button>
          ))}
          <button type="button" class="gfx-chip" onClick={() => take(words.slice(0, -1).join(" "))}>
            ⌫ last word
          </button>
        </div>
      </details>
    </div>
  );
}

/** Return texts that go on from what is typed: its last word completed, or one more word. */
function suggestions(typed, vocabulary) {
  const words = splitWords(typed);
  const begun = /\s$/.test(typed) || !words.length ? "" : words.pop();
  const fitting = vocabulary.words.filter((word) => word.startsWith(begun) && word !== begun);
  return fitting.slice(0, 24).map((word) => [...words, word].join(" "));
}

/**
 * The prompt's tokens with their ids; one can be chosen.
 * @param {{words: string[], ids: number[], chosen?: number, onChoose?: function(number): void, label: string}} props
 */
export function Tokens({ words, ids, chosen, onChoose, label }) {
  const latest = useRef(onChoose);
  latest.current = onChoose;
  const choose = useCallback((n) => latest.current(n), []);
  const runs = Array.from({ length: Math.ceil(words.length / RUN) }, (_, r) => r * RUN);
  return (
    <div class="gfx-chain" role="group" aria-label={label}>
      {runs.map((from) => (
        <Run
          key={from} from={from} words={words.slice(from, from + RUN)} ids={Array.from(ids.slice(from, from + RUN))}
          chosen={chosen >= from && chosen < from + RUN ? chosen : null} onChoose={onChoose && choose}
        />
      ))}
    </div>
  );
}

const RUN = 16; // tokens that are drawn again together

const Run = memo(function Run({ from, words, ids, chosen, onChoose }) {
  return words.map((word, n) => {
    const inside = <><span class="gfx-token-word">{word}</span><span class="gfx-token-id">{ids[n]}</span></>;
    return onChoose ? (
      <button key={n} type="button" class="gfx-token" aria-pressed={from + n === chosen} onClick={() => onChoose(from + n)}>{inside}</button>
    ) : (
      <span key={n} class="gfx-token">{inside}</span>
    );
  });
});
