import type { JSX } from "preact";
import type { Health } from "../model/row.ts";

const words: Readonly<Record<Health, string>> = { good: "well", moving: "in progress", bad: "not well", idle: "idle" };

/** State as form and colour; one element, for there are many. */
export const Mark = ({ health }: { readonly health: Health }): JSX.Element => (
  <span class={`mark ${health}`} role="img" aria-label={words[health]} />
);

export function Status({ health, text }: { readonly health: Health; readonly text: string }): JSX.Element {
  return (
    <span class={`status ${health}`}>
      <Mark health={health} />
      <span class="cut">{text}</span>
    </span>
  );
}

interface BarProps {
  readonly label: string;
  /** 0 to 100 */
  readonly value: number;
  readonly text: string;
  /** A mark on the bar, 0 to 100. */
  readonly mark?: number | undefined;
}

export function Bar({ label, value, text, mark }: BarProps): JSX.Element {
  return (
    <div class="meter">
      <span class="meter-label">{label}</span>
      <span class={`bar ${value >= 90 ? "bad" : value >= 75 ? "moving" : "good"}`} role="img" aria-label={`${label} ${text}`}>
        <span class="fill" style={{ width: `${value}%` }} />
        {mark !== undefined && <span class="tick" style={{ left: `${mark}%` }} />}
      </span>
      <span class="meter-text">{text}</span>
    </div>
  );
}

const shapes = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zm3.6-1.4L14 14",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6 13 13M13 3l-1.4 1.4M4.4 11.6 3 13",
  moon: "M13.5 9.6A6 6 0 1 1 6.4 2.5a5 5 0 0 0 7.1 7.1z",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  help: "M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2 1-1.2 1.9M8 12.6v.1",
  exit: "M9.5 5V3H3v10h6.5v-2M6.5 8H14M11.5 5.5 14 8l-2.5 2.5",
  cluster: "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5H9z",
  workloads: "M8 1.8 14 5 8 8.2 2 5zM2 8l6 3.2L14 8M2 11l6 3.2 6-3.2",
  pods: "M8 1.5 13.6 4.7v6.6L8 14.5 2.4 11.3V4.7zM2.4 4.7 8 8l5.6-3.3M8 8v6.5",
  events: "M2 13V9M6 13V4M10 13V7M14 13V2",
  trouble: "M8 2 14.5 13.5H1.5zM8 6.5v3M8 11.6v.1",
  down: "M3.5 6 8 10.5 12.5 6",
} as const;

export function Icon({ name }: { readonly name: keyof typeof shapes }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}
