/** All that instruments are built from. */

export * from "./fields.js";
export * from "./format.js";
export { Frame, Copy, Pointing, Scope, Table, Value, keyOf } from "./frame.jsx";
export { Prompt, Tokens, readPrompt, usePrompt } from "./prompt.jsx";
export { Button, Choice, Row, Select, Slider, Switch, WholeNumber } from "./controls.jsx";
export { Matrix } from "./matrix.jsx";
export { Figures } from "./figures.jsx";
export { Stack } from "./stack.jsx";
export { Bars } from "./bars.jsx";
export { Plot, useWidth } from "./plot.jsx";
