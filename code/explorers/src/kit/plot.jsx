/** Lines and points on two axes, drawn at the size at which they are read. */

import { useEffect, useRef, useState } from "preact/hooks";
import { number } from "./format.js";

const LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 34;

/** Return [ref, width in pixels] of an element that follows its container. */
export function useWidth(standard = 600) {
  const ref = useRef(null);
  const [width, setWidth] = useState(standard);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(Math.round(entry.contentRect.width), 200)));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

/**
 * @param {object} props
 * @param {string} props.label a sentence that says what the plot shows
 * @param {{min: number, max: number, label: string, ticks: number[], digits?: number}} props.x
 * @param {{min: number, max: number, label: string, ticks: number[], digits?: number}} props.y
 * @param {{points: number[][], role: string, dashed?: boolean, name?: string}[]} [props.lines] [x, y] each
 * @param {{x: number, y: number, role: string, text?: string, hollow?: boolean, size?: number}[]} [props.points]
 * @param {{y: number, text: string, role: string}[]} [props.levels] dashed lines across, with what they say
 * @param {number} [props.height]
 * @param {number} [props.at] an x at which an upright line stands
 */
export function Plot({ label, x, y, lines = [], points = [], levels = [], height = 240, at }) {
  const [ref, width] = useWidth();
  const toX = (value) => LEFT + ((value - x.min) / (x.max - x.min)) * (width - LEFT - RIGHT);
  const toY = (value) => height - BOTTOM - ((value - y.min) / (y.max - y.min)) * (height - TOP - BOTTOM);
  const inside = ([a, b]) => Number.isFinite(a) && Number.isFinite(b) && b <= y.max && b >= y.min;
  const path = (all) => all.filter(inside).map(([a, b]) => `${toX(a).toFixed(1)},${toY(b).toFixed(1)}`).join(" ");
  const hue = (role) => `var(--gf-${role})`;
  return (
    <div class="gfx-plot" ref={ref}>
      <svg width={width} height={height} role="img" aria-label={label}>
        <Axes x={x} y={y} toX={toX} toY={toY} width={width} height={height} />
        {levels.map((level) => (
          <g key={level.text}>
            <line x1={LEFT} x2={width - RIGHT} y1={toY(level.y)} y2={toY(level.y)} stroke={hue(level.role)} stroke-width="1.2" stroke-dasharray="6 4" />
            <text x={width - RIGHT} y={toY(level.y) + 15} text-anchor="end">{level.text}</text>
          </g>
        ))}
        {lines.map((line, n) => (
          <polyline key={n} points={path(line.points)} fill="none" stroke={hue(line.role)} stroke-width="1.8" stroke-dasharray={line.dashed ? "5 4" : undefined} />
        ))}
        {at !== undefined && <line x1={toX(at)} x2={toX(at)} y1={TOP} y2={height - BOTTOM} stroke={hue("ink")} stroke-width="1" />}
        {points.filter((p) => inside([p.x, p.y])).map((p, n) => (
          <g key={n} transform={`translate(${toX(p.x).toFixed(1)} ${toY(p.y).toFixed(1)})`}>
            <circle r={p.size ?? 3.5} fill={p.hollow ? hue("paper") : hue(p.role)} stroke={hue(p.role)} stroke-width="1.5" />
            {p.text && <text x="6" y="4">{p.text}</text>}
          </g>
        ))}
      </svg>
    </div>
  );
}

function Axes({ x, y, toX, toY, width, height }) {
  const floor = height - BOTTOM;
  return (
    <g class="gfx-axes">
      {y.ticks.map((tick) => (
        <g key={tick}>
          <line x1={LEFT} x2={width - RIGHT} y1={toY(tick)} y2={toY(tick)} />
          <text x={LEFT - 6} y={toY(tick) + 4} text-anchor="end">{number(tick, y.digits ?? 1)}</text>
        </g>
      ))}
      {x.ticks.map((tick) => (
        <text key={tick} x={toX(tick)} y={floor + 15} text-anchor="middle">{number(tick, x.digits ?? 0)}</text>
      ))}
      <text x={width - RIGHT} y={height - 4} text-anchor="end">{x.label}</text>
      <text x={LEFT + 4} y={TOP + 8}>{y.label}</text>
    </g>
  );
}
