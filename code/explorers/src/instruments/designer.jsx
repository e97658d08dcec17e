/** A model of one's own: every field of its config, what it costs, and the file that holds it. */

import { useMemo, useState } from "preact/hooks";
import { useId } from "../kit/ids.js";
import { configOf, parseConfig } from "../engine/index.js";
import { decoded } from "../files.js";
import { BUDGET, Design, FIELDS, PRESETS, preset } from "../design.js";
import { Button, Copy, Figures, Frame, Row, Switch, Value, count, flag, number, percent, real, whole } from "../kit/index.js";

const LARGEST = 1e12, LONGEST = 65536; // of a field; of a file, in bytes
const START = preset("plain");

/** Further keys of a file, which are kept. */
const extra = {
  default: {},
  clean(value) {
    let data = value;
    try {
      if (typeof value === "string") data = JSON.parse(value);
      return typeof data === "object" && data && !Array.isArray(data) && JSON.stringify(data).length <= LONGEST ? data : undefined;
    } catch {
      return undefined;
    }
  },
};

const COUNTS = ["vocab_size", "dim", "n_layers", "n_heads", "n_kv_heads", "max_seq_len"];
const NUMBERS = ["ffn_dim_multiplier", "norm_eps", "rope_theta"];

export const designer = {
  name: "designer",
  title: "Design a model",
  fields: {
    ...Object.fromEntries(COUNTS.map((field) => [field, whole(START[field], 0, LARGEST)])),
    ...Object.fromEntries(NUMBERS.map((field) => [field, real(START[field], 0, 1e30)])),
    tie_word_embeddings: flag(START.tie_word_embeddings),
    extra,
    budget: whole(BUDGET, 1, LARGEST),
  },
  View,
};

const PARTS = [
  ["embedding", "token table", "token"],
  ["attention", "attention", "attention"],
  ["ffn", "feed-forward", "residual"],
  ["norms", "norms", "muted"],
  ["head", "output head", "token"],
];

function View({ state, set }) {
  const [typed, setTyped] = useState({}); // texts of boxes that are being written in
  const [news, tell] = useState({}); // about a file
  const { budget } = state, values = valuesOf(state, typed);
  const design = useMemo(() => new Design(values), [JSON.stringify(values)]);
  const { config } = design;
  const explainer = useMemo(() => (config ? design.explainer(budget) : () => null), [design, budget]);
  const findings = useMemo(() => config && design.findings(), [design]);
  const take = (fields) => {
    setTyped({});
    set(fields);
  };
  const write = (field, text) => {
    setTyped({ ...typed, [field]: text });
    if (fits(field, text)) set({ [field]: valueOf(text) });
  };
  const leave = (field) => {
    const { [field]: text, ...others } = typed;
    if (text !== undefined && fits(field, text)) setTyped(others);
  };
  const dial = (field) => ({
    field, value: values[field], text: typed[field] ?? String(state[field]), onType: (text) => write(field, text), onLeave: () => leave(field),
    onSlide: (value) => take({ [field]: value }), problem: design.broken.some((rule) => rule.field === field),
  });
  return (
    <Frame explainer={explainer} sentence={sentence(design, findings, budget)} twin={() => twin(design, budget)}>
      <div class="gfx-row gfx-ds-presets" role="group" aria-label="Designs of the book">
        {Object.keys(PRESETS).map((name) => (
          <Button key={name} pressed={FIELDS.every((field) => values[field] === preset(name)[field])} onClick={() => take({ ...preset(name), extra: {} })}>{name}</Button>
        ))}
      </div>
      <div class="gfx-ds-fields">
        <Dial {...dial("vocab_size")} label="tokens it knows" choices={powers(6, 17)} />
        <Dial {...dial("dim")} label="numbers in a token's vector" choices={multiples(values.n_heads)} />
        <Dial {...dial("n_layers")} label="blocks" choices={range(1, 48)} />
        <Dial {...dial("n_heads")} label="query heads" choices={range(1, 32).filter((n) => values.dim % (2 * n) === 0)} />
        <Dial {...dial("n_kv_heads")} label="key/value heads" choices={range(1, 32).filter((n) => values.n_heads % n === 0)} />
        <Dial {...dial("max_seq_len")} label="the window, in tokens" choices={powers(5, 16)} />
        <Dial {...dial("ffn_dim_multiplier")} label="width of SwiGLU" choices={range(1, 16).map((n) => n / 2)} />
        <Switch label={<><code>tie_word_embeddings</code> one table for both ends</>} on={state.tie_word_embeddings} onChange={(on) => take({ tie_word_embeddings: on })} />
      </div>
      <details class="gfx-ds-more">
        <summary>Two more fields, which cost nothing</summary>
        <div class="gfx-ds-fields">
          <Dial {...dial("norm_eps")} label="keeps a norm from dividing by nothing" />
          <Dial {...dial("rope_theta")} label="base of the rotary angles" />
        </div>
      </details>
      <div role="alert">
        {design.broken.length > 0 && <ul class="gfx-ds-broken">{design.broken.map(({ message }) => <li key={message}>{message}</li>)}</ul>}
      </div>
      {config && <Costs design={design} budget={budget} findings={findings} />}
      <File config={config} news={news} tell={tell} take={take} />
    </Frame>
  );
}

/** Return the number that a text in a box means, written plainly or in groups as the page writes it: 2,048. */
function valueOf(text) {
  return Number(/^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(text.trim()) ? text.replaceAll(",", "") : text);
}

/** Return whether a text in a box is a value that the state can hold; it may still break a rule. */
function fits(field, text) {
  const value = valueOf(text);
  if (text.trim() === "" || !(value >= 0)) return false;
  return COUNTS.includes(field) ? Number.isInteger(value) && value <= LARGEST : value <= 1e30;
}

/** Return the fields as they stand, those that are being written as they are written. */
function valuesOf({ budget, ...state }, typed) {
  const written = Object.entries(typed).map(([field, text]) => [field, text.trim() === "" || Number.isNaN(valueOf(text)) ? text : valueOf(text)]);
  return { ...state, ...Object.fromEntries(written) };
}

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
const powers = (from, to) => range(from, to).map((n) => 2 ** n);

/** Return the widths that heads of an even size divide, to 512 or a little beyond. */
function multiples(heads) {
  const step = Number.isInteger(heads) && heads > 0 && heads <= 256 ? 2 * heads : 2;
  return range(1, Math.floor(512 / step)).map((n) => n * step);
}

/** A field: a box for any value, and a slider for those that suit. */
function Dial({ field, label, value, text, choices, problem, onType, onLeave, onSlide }) {
  const id = useId(), { length: many = 0 } = choices ?? [];
  const nearest = many ? choices.reduce((best, choice, n) => (Math.abs(choice - value) < Math.abs(choices[best] - value) ? n : best), 0) : 0;
  return (
    <div class="gfx-ds-field">
      <label for={id}><code>{field}</code> <span class="gfx-muted">{label}</span></label>
      <input
        id={id} type="text" inputmode="decimal" autocomplete="off" spellcheck={false} maxLength={24} value={text} aria-invalid={problem}
        onInput={(event) => onType(event.currentTarget.value)} onBlur={onLeave}
      />
      {many > 1 && (
        <input
          type="range" aria-label={`${field}, valid values`} min={0} max={many - 1} value={nearest} aria-valuetext={count(choices[nearest])}
          onInput={(event) => onSlide(choices[Number(event.currentTarget.value)])}
        />
      )}
    </div>
  );
}

// What it costs

function Costs({ design, budget, findings }) {
  const cell = (name, show = count) => ({ name, index: [], value: design.value(name, budget), show });
  const rows = PARTS.map(([part, label, role]) => [
    <><span class={`gfx-ds-swatch gfx-ds-${part}`} style={{ "--hue": `var(--gf-${role})` }} />{label}</>, cell(part), cell(`${part}: share`, percent),
  ]);
  const left = design.value("left", budget);
  return (
    <>
      <div>
        <p class="gfx-ds-total">
          <Value {...cell("parameters")} /> of <Value {...cell("budget")} /> parameters, {left >= 0
            ? <><Value {...cell("left")} /> to spare</>
            : <><Value {...cell("left", (n) => count(-n))} /> too many</>}
        </p>
        <Strip design={design} budget={budget} />
      </div>
      <Row>
        <Figures label="Where the parameters are" columns={["part", "parameters", "share"]} rows={rows} />
        <Figures
          label="What it costs" columns={["cost", "amount"]}
          rows={[
            ["head size", cell("head_dim")], ["hidden size of SwiGLU", cell("ffn_hidden_dim")],
            ["cache, numbers a token", cell("cache a token")], ["cache, full window", cell("cache, full window", bytes)],
            ["FLOPs, first token", cell("FLOPs, first token")], ["FLOPs, last token", cell("FLOPs, last token")],
          ]}
        />
      </Row>
      {Object.entries(findings).map(([milestone, found]) => <Verdict key={milestone} milestone={milestone} found={found} />)}
    </>
  );
}

/** Whether a milestone accepts the design, and if not, why. */
function Verdict({ milestone, found }) {
  return (
    <div class={found.length ? "gfx-ds-verdict gfx-ds-no" : "gfx-ds-verdict"}>
      <p><b>{found.length ? `Milestone ${milestone} does not accept it yet:` : `✓ Milestone ${milestone} accepts this design.`}</b></p>
      {found.map((finding) => <p key={finding}>{finding}</p>)}
    </div>
  );
}

/** Return bytes with the unit in which they are read. */
function bytes(n) {
  const [size, unit] = n < 1024 ? [n, "bytes"] : n < 2 ** 20 ? [n / 1024, "KiB"] : n < 2 ** 30 ? [n / 2 ** 20, "MiB"] : [n / 2 ** 30, "GiB"];
  return `${number(size, Number.isInteger(size) ? 0 : 1)} ${unit}`;
}

const WIDE = 1000, TALL = 84, DRAWN = 96; // of the strip; blocks that are drawn one by one

/** The design as a strip, areas in proportion to parameters: tables at the ends, blocks between them. */
function Strip({ design: { config }, budget }) {
  const parts = config.paramsByPart(), whole = config.numParams(), scale = WIDE / Math.max(whole, budget);
  const blocks = Math.min(config.n_layers, DRAWN), both = parts.attention + parts.ffn;
  const width = (scale * both) / blocks, above = (TALL * parts.attention) / both, table = scale * parts.embedding;
  const shares = PARTS.map(([part, label]) => `${label} ${percent(parts[part] / whole)}`);
  return (
    <svg class="gfx-ds-strip" viewBox={`0 0 ${WIDE} ${TALL}`} preserveAspectRatio="none" role="img" aria-label={`The design to scale, ${config.n_layers} blocks: ${shares.join(", ")}`}>
      <rect class="gfx-ds-room" x="0" y="0" width={scale * budget} height={TALL} />
      <rect class="gfx-ds-embedding" x="0" y="0" width={table} height={TALL} />
      {Array.from({ length: blocks }, (_, n) => (
        <g key={n} transform={`translate(${table + n * width} 0)`}>
          <rect class="gfx-ds-attention" width={width} height={above} />
          <rect class="gfx-ds-ffn" y={above} width={width} height={TALL - above} />
        </g>
      ))}
      {parts.head > 0 && <rect class="gfx-ds-head" x={table + blocks * width} y="0" width={scale * parts.head} height={TALL} />}
      <line class="gfx-ds-limit" x1={scale * budget} x2={scale * budget} y1="0" y2={TALL} />
    </svg>
  );
}

// The file

/** Saves the design as config.json, and loads one: chosen, or dropped here. */
function File({ config, news, tell, take }) {
  const id = useId(), [over, setOver] = useState(false);
  const open = async (file) => {
    if (!file) return;
    const { fields, message } = await opened(file);
    if (fields) take(fields);
    tell({ message, failed: !fields });
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    const files = [...event.dataTransfer.files]; // perhaps a trained model's, all of them
    open(files.find(({ name }) => name === "config.json") ?? files[0]);
  };
  const drag = (event) => {
    event.preventDefault();
    setOver(true);
  };
  const text = config?.toText();
  return (
    <div class={`gfx-ds-file${over ? " gfx-ds-over" : ""}`} role="group" aria-label="config.json" onDragOver={drag} onDragLeave={() => setOver(false)} onDrop={drop}>
      <Row>
        {text
          ? <a class="gfx-button gfx-ds-save" href={`data:application/json;charset=utf-8,${encodeURIComponent(text)}`} download="config.json">Download config.json</a>
          : <Button disabled>Download config.json</Button>}
        {text && <Copy label="Copy as text" text={() => text} />}
        <label class="gfx-button gfx-ds-load" for={id}>
          Load a config.json
          <input id={id} type="file" accept=".json,application/json" onChange={({ currentTarget: box }) => open(box.files[0]).then(() => (box.value = ""))} />
        </label>
        <span class="gfx-muted">or drop one here</span>
      </Row>
      <p class={news.failed ? "gfx-error" : "gfx-muted"} role="status">{news.message}</p>
      {text && (
        <details>
          <summary>What is in the file</summary>
          <pre class="gfx-mono" tabindex="0">{text}</pre>
        </details>
      )}
    </div>
  );
}

/** Return the fields that a file holds and what to say of it; a bad file gives a sentence alone. */
async function opened(file) {
  const name = file.name.slice(0, 60);
  try {
    if (file.size > LONGEST) throw new Error(`${name} is larger than 64 KiB; a config needs less than 1 KiB.`);
    const config = parseConfig(decoded(await file.arrayBuffer(), name), name, configOf);
    const fields = Object.fromEntries(FIELDS.map((field) => [field, config[field]]));
    return { fields: { ...fields, n_kv_heads: config.kv_heads, extra: config.extra }, message: `${name} is loaded.` };
  } catch (error) {
    return { message: error.message };
  }
}

// In words

function sentence({ broken, config }, findings, budget) {
  if (!config) return `${broken.length === 1 ? "One rule is" : `${broken.length} rules are`} broken: ${broken.map(({ field }) => field).join(", ")}.`;
  return (
    `${count(config.numParams())} of ${count(budget)} parameters, ${verdict(findings)}; a full window takes ` +
    `${bytes(config.kvCacheBytes())} of cache and ${count(config.flopsPerToken())} operations for its last token.`
  );
}

/** Return by which milestones a design is accepted. */
function verdict(findings) {
  const names = (taken) => Object.keys(findings).filter((name) => !findings[name].length === taken);
  const accepted = names(true), open = names(false);
  if (!accepted.length) return "accepted by neither milestone yet";
  return open.length ? `accepted by milestone ${accepted}, not yet by ${open}` : `accepted by milestones ${accepted.join(" and ")}`;
}

function twin(design, budget) {
  const { config, values } = design;
  const fields = { caption: "The design, field by field", columns: ["field", "value"], rows: FIELDS.map((field) => [field, String(values[field])]) };
  if (!config) return [fields];
  const lines = (names) => names.map((name) => [name, String(design.value(name, budget))]);
  const costs = ["parameters", "budget", "head_dim", "ffn_hidden_dim", "cache a token", "cache, full window", "FLOPs, first token", "FLOPs, last token"];
  return [
    fields,
    { caption: "Where the parameters are", columns: ["part", "parameters"], rows: lines(PARTS.map(([part]) => part)) },
    { caption: "What it costs", columns: ["cost", "amount"], rows: lines(costs) },
  ];
}
