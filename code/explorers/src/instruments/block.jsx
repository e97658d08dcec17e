/** One token through BabyGroot's block: residual, norm, feed-forward network, residual, norm. */

import { useContext, useMemo } from "preact/hooks";
import { largest, stepOf } from "../kit/colour.js";
import {
  Button, Choice, Frame, Pointing, Prompt, Stack, Tokens, Value, choice, count, number, text, usePrompt, whole,
} from "../kit/index.js";
import { B1, B2, NORMS, Passage, STAGES, W1, W2 } from "../passage.js";

const PROMPT = "<START> i am groot";

/** Each stage: its symbol, how it comes about in the stream, and what happens there. */
const TOLD = {
  h0: ["H₀", "", "The stream begins: the token's own vector plus that of its position."],
  context: ["context", "+ ", "What the token heard through attention: the values of all it looked at, each by its share."],
  r1: ["R₁", "= ", "What it heard is added to what it was. A plain sum: the longer of the two wins."],
  n1: ["N₁", "→ ", "The norm takes the row's mean away and divides by its spread: z has mean 0 and variance 1. Then each column is scaled by γ₁ and shifted by β₁."],
  ffn_hidden: ["W₁N₁ + b₁", "", "The feed-forward network looks at the row with twice as many units. Each weighs all its numbers and adds a bias."],
  ffn_activation: ["ReLU", "", "Every unit below zero is switched off: it becomes 0, and whatever it would say counts nothing."],
  ffn_out: ["F", "+ ", "Each unit that fires adds its own pattern, as strongly as it fires; with b₂ that makes F."],
  r2: ["R₂", "= ", "What the network says is added to the stream."],
  h_out: ["H_out", "→ ", "A second norm, with γ₂ and β₂: this is what the head reads."],
};

const ADDED = { r1: ["h0", "context"], r2: ["n1", "ffn_out"] };
const UNITS = ["ffn_hidden", "ffn_activation"];
const roleOf = (stage) => (stage === "context" ? "context" : "residual");

export const block = {
  name: "block",
  title: "One token through the block",
  fields: {
    prompt: text(PROMPT),
    position: whole(2, 0, 63),
    step: choice("h0", STAGES),
    unit: whole(13, 0, 9999),
  },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary } = data;
  const prompt = usePrompt(state.prompt, vocabulary, groot.maxLen, PROMPT);
  const position = Math.min(state.position, prompt.ids.length - 1);
  const passage = useMemo(() => new Passage(groot, prompt.ids, position), [groot, String(prompt.ids), position]);
  const explainer = useMemo(() => (ref) => passage.explain(ref), [passage]);
  const words = prompt.ids.map((id) => vocabulary.word(id)), { step } = state;
  const unit = Math.min(state.unit, passage.units - 1);
  const place = STAGES.indexOf(step);
  const told = { passage, step, unit, words, set };
  return (
    <Frame
      pass={passage} explainer={explainer} sentence={sentence(told)} twin={() => twin(told)}
      first={{ name: step, index: [position, UNITS.includes(step) ? unit : 0] }}
    >
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={groot.maxLen} onChange={(text) => set({ prompt: text })} />
      <Tokens label="Which token?" words={words} ids={prompt.ids} chosen={position} onChoose={(n) => set({ position: n })} />
      <Choice label="Stage" value={step} options={STAGES.map((name) => [name, TOLD[name][0]])} onChange={(name) => set({ step: name })} />
      <div class="gfx-row gfx-block-steps" role="group" aria-label="Steps">
        <Button onClick={() => set({ step: STAGES[place - 1] })} disabled={place === 0}>Back</Button>
        <Button onClick={() => set({ step: STAGES[place + 1] })} disabled={place === STAGES.length - 1}>Next stage</Button>
        <p class="gfx-block-what"><b>{TOLD[step][0]}</b> {TOLD[step][2]}</p>
      </div>
      <Stream passage={passage} step={step} word={words[position]} />
      <Stage {...told} />
    </Frame>
  );
}

/** The token's numbers at every stage, one below the other. */
function Stream({ passage, step, word }) {
  const { position: t, units } = passage;
  const rows = useMemo(() => {
    const scale = largest(STAGES.filter((name) => !UNITS.includes(name)).flatMap((name) => [...passage.at(name)]));
    return STAGES.map((name) => ({
      key: name,
      head: <><span class="gfx-block-sign">{name === step ? "▸ " : ""}{TOLD[name][1]}</span>{TOLD[name][0]}</>,
      cells: passage.refs(name), role: roleOf(name),
      asides: ["mean", "variance", "length"].map((measure) => passage.ref(`${name}.${measure}`, t)),
      ...(UNITS.includes(name) ? { scale: largest(passage.at("ffn_hidden")), ...SMALL[name] } : { scale }),
      mark: markOf(name, step),
    }));
  }, [passage, step]);
  const columns = useMemo(() => numbered(units / 2), [units]);
  return <Stack label={`${word}, stage by stage`} name="stages" columns={columns} asides={BESIDE} rows={rows} />;
}

const BESIDE = ["mean", "variance", "length"];

/** Units are too many for digits in the stream: a sign before ReLU, a mark for on or off behind it. */
const SMALL = {
  ffn_hidden: {
    show: ({ value }) => (value < 0 ? "−" : "+"),
    told: ({ index, value }) => `unit ${index[1]}: ${number(value)}`,
  },
  ffn_activation: {
    show: ({ value }) => (value === 0 ? "○" : "●"),
    told: ({ index, value }) => `unit ${index[1]} ${value === 0 ? "is off" : `fires: ${number(value)}`}`,
  },
};

/** Return a row's mark: the stage that is shown, and those it is made of. */
function markOf(name, step) {
  if (name === step) return "gfx-block-now";
  const before = STAGES[STAGES.indexOf(step) - 1];
  const from = ADDED[step] ?? (step === "h0" || step === "context" ? [] : [before]);
  return from.includes(name) ? "gfx-block-from" : undefined;
}

/** What happens at a stage, in numbers. */
function Stage(told) {
  const { step } = told;
  if (ADDED[step]) return <Sum {...told} />;
  if (NORMS[step]) return <Norm {...told} />;
  if (step === "h0") return <Start {...told} />;
  return step === "context" ? <Heard {...told} /> : <Network {...told} />;
}

/** A row of a stack, in a colour. */
const line = (key, head, cells, role, scale) => ({ key, head, cells, role, scale });

const scaleOf = (...lists) => largest(lists.flat().map(({ value }) => value));

function Start({ passage, words }) {
  const { position: t } = passage;
  const rows = useMemo(() => {
    const [token, place, h0] = ["token_embedding", "position_embedding", "h0"].map((name) => passage.refs(name));
    const scale = scaleOf(token, place, h0);
    return [
      line("token_embedding", `Eₜ of ${words[t]}`, token, "token", scale),
      line("position_embedding", `+ Pₜ of ${t}`, place, "position", scale),
      line("h0", "= H₀", h0, "residual", scale),
    ];
  }, [passage]);
  return <Stack label="Token and position" name="start" columns={numbered(rows[0].cells.length)} rows={rows} />;
}

function Heard({ passage, words }) {
  const { position: t, seen } = passage;
  const rows = useMemo(() => {
    const heard = passage.refs("context"), values = words.map((_, s) => passage.line("v", s)), scale = scaleOf(heard, ...values);
    return [
      ...words.map((word, s) => ({
        ...line(`v_${s}`, `${s ? "+ " : ""}v of ${word}`, values[s], "value", scale), asides: [passage.ref("attention", t, s)],
      })),
      line("context", "= context", heard, "context", scale),
    ];
  }, [passage]);
  return <Stack label={`What ${words[t]} heard: each row times its share`} name="heard" columns={numbered(seen.v.shape[1])} asides={SHARE} rows={rows} />;
}

const SHARE = ["share"];

function Sum({ passage, step }) {
  const [was, added] = ADDED[step], { position: t } = passage;
  const long = (name) => <Value {...passage.ref(`${name}.length`, t)} digits={2} />;
  return (
    <p>
      {TOLD[was][0]} is {long(was)} long, {TOLD[added][0]} {long(added)}; together they are {long(step)}.
    </p>
  );
}

function Norm({ passage, step }) {
  const { reads, z, weights } = NORMS[step], { position: t } = passage, n = step === "n1" ? "₁" : "₂";
  const rows = useMemo(() => {
    const x = passage.refs(reads), y = passage.refs(step);
    const own = (name) => x.map((_, c) => passage.ref(`${weights}.${name}`, c));
    const flat = x.map((_, c) => passage.ref(z, t, c)), [gamma, beta] = [own("weight"), own("bias")];
    const scale = scaleOf(x, flat, gamma, beta, y);
    return [
      line(reads, TOLD[reads][0], x, "residual", scale),
      line(z, "z = (R − μ) / σ", flat, "residual", scale),
      line("gamma", `· γ${n}`, gamma, "residual", scale),
      line("beta", `+ β${n}`, beta, "residual", scale),
      line(step, `= ${TOLD[step][0]}`, y, "residual", scale),
    ];
  }, [passage, step]);
  const value = (name, digits = 2) => <Value {...passage.ref(`${reads}.${name}`, t)} digits={digits} />;
  return (
    <>
      <p>{TOLD[reads][0]} has mean {value("mean")} and variance {value("variance")}.</p>
      <Stack label="The norm, column by column" name="norm" columns={numbered(rows[0].cells.length)} rows={rows} />
    </>
  );
}

/** The hidden units, one of which is opened. */
function Network({ passage, step, unit, set }) {
  const { position: t, units } = passage;
  return (
    <>
      <p><Value {...passage.ref("fires", t)} show={count} /> of {units} units fire. Open one:</p>
      <Units passage={passage} shown={step === "ffn_hidden" ? step : "ffn_activation"} unit={unit} set={set} />
      <p>
        <b>Unit {unit}</b> weighs the numbers of N₁ and adds its bias <Value {...passage.ref(B1, unit)} digits={2} />:
        that makes <Value {...passage.ref("ffn_hidden", t, unit)} digits={2} />.{" "}
        {passage.fires(unit) ? (
          <>It fires, and adds <Value {...passage.ref("ffn_activation", t, unit)} digits={2} /> times its pattern to F.</>
        ) : (
          <>It is off: its pattern is taken <Value {...passage.ref("ffn_activation", t, unit)} digits={0} /> times.</>
        )}
      </p>
      <Unit passage={passage} unit={unit} />
    </>
  );
}

/** The strip of units: each with its number, its value, and on or off in words and by a mark. */
function Units({ passage, shown, unit, set }) {
  const { point } = useContext(Pointing), numbers = passage.refs(shown), full = scaleOf(passage.refs("ffn_hidden"));
  return (
    <div class="gfx-block-units" role="group" aria-label="Hidden units">
      {numbers.map((ref, u) => {
        const on = passage.fires(u), tell = () => point(ref), step = full ? stepOf(Math.abs(ref.value) / full) : 0;
        const hue = ref.value < 0 ? "var(--gf-scores_low)" : "var(--gf-residual)";
        return (
          <button
            key={u} type="button" aria-pressed={u === unit} onClick={() => set({ unit: u })} onPointerEnter={tell} onFocus={tell}
            class={`gfx-block-unit${on ? "" : " gfx-block-off"}${step === 100 ? " gfx-deep" : ""}`} style={{ "--p": `${step}%`, "--hue": hue }}
          >
            <span>unit {u}</span><b>{number(ref.value)}</b><span>{on ? "● on" : "○ off"}</span>
          </button>
        );
      })}
    </div>
  );
}

/** One unit: what it reads, and what it adds to F. */
function Unit({ passage, unit }) {
  const { position: t } = passage;
  const rows = useMemo(() => unitRows(passage, t, unit), [passage, t, unit]);
  return <Stack label={`Unit ${unit}: what it reads, and what it adds`} name={`unit_${unit}`} columns={numbered(rows[0].cells.length)} rows={rows} />;
}

function unitRows(passage, t, u) {
  const x = passage.refs("n1"), out = passage.refs("ffn_out");
  const each = (name, ...index) => x.map((_, i) => passage.ref(name, ...index, i));
  const reads = each("reads", t, u), adds = each("adds", t, u), narrow = x.map((_, c) => passage.ref(W2, c, u));
  const b2 = x.map((_, c) => passage.ref(B2, c)), scale = scaleOf(x, reads), weights = scaleOf(each(W1, u), narrow);
  return [
    line("N1", "N₁", x, "residual", scale),
    line("W1", `· W₁[${u}]`, each(W1, u), "residual", weights),
    line("reads", "= it reads", reads, "residual", scale),
    line("W2", `pattern W₂[:,${u}]`, narrow, "residual", weights),
    line("adds", "· a = it adds", adds, "residual", scaleOf(adds, out)),
    line("b2", "b₂", b2, "residual", scaleOf(adds, out)),
    line("F", "F, of all", out, "residual", scaleOf(adds, out)),
  ];
}

const numbered = (n) => Array.from({ length: n }, (_, i) => String(i));

function firing(passage) {
  return numbered(passage.units).filter((u) => passage.fires(u));
}

function sentence({ passage, step, words }) {
  const t = passage.position, [mean, variance, long] = BESIDE.map((name) => number(passage.ref(`${step}.${name}`, t).value));
  const on = firing(passage);
  return (
    `${words[t]}, at position ${t}: its ${TOLD[step][0]} has mean ${mean}, variance ${variance} and length ${long}. ` +
    `${on.length} of ${passage.units} hidden units fire${on.length ? `: ${on.join(", ")}` : ""}.`
  );
}

function twin({ passage, unit, words }) {
  const t = passage.position, values = (refs) => refs.map(({ value }) => value), width = passage.at("h0").length;
  const measures = (name) => BESIDE.map((measure) => passage.ref(`${name}.${measure}`, t).value);
  const stages = STAGES.filter((name) => !UNITS.includes(name));
  return [
    {
      caption: `${words[t]}, stage by stage`, columns: ["stage", ...numbered(width), ...BESIDE],
      rows: stages.map((name) => [name, ...values(passage.refs(name)), ...measures(name)]),
    },
    {
      caption: "Hidden units", columns: ["unit", "before ReLU", "behind it", "fires"],
      rows: numbered(passage.units).map((u) => [u, passage.at("ffn_hidden")[u], passage.at("ffn_activation")[u], passage.fires(u) ? "yes" : "no"]),
    },
    {
      caption: "Hidden units, their numbers measured", columns: ["stage", ...BESIDE],
      rows: UNITS.map((name) => [name, ...measures(name)]),
    },
    ...Object.entries(NORMS).map(([name, { reads, z, weights }]) => ({
      caption: `The norm from ${reads} to ${name}`, columns: ["row", ...numbered(width)],
      rows: [
        ["z", ...numbered(width).map((c) => passage.ref(z, t, Number(c)).value)],
        ...["weight", "bias"].map((own) => [`${weights}.${own}`, ...numbered(width).map((c) => passage.ref(`${weights}.${own}`, Number(c)).value)]),
      ],
    })),
    {
      caption: `Unit ${unit}`, columns: ["row", ...numbered(width)],
      rows: unitRows(passage, t, unit).map(({ key, cells }) => [key, ...values(cells)]),
    },
  ];
}
