/** Draws the pods of a node as squares in rows, with one SVG path for each state, so that a node needs few elements. */
import type { Health, PodRow } from "./row.ts";

export interface Measures {
  /** Squares per row. */
  readonly columns: number;
  /** Distance between the origins of two squares. */
  readonly pitch: number;
  readonly side: number;
}

export const widthOf = ({ columns, pitch, side }: Measures): number => (columns - 1) * pitch + side;
export const heightOf = (count: number, { columns, pitch, side }: Measures): number =>
  count === 0 ? 0 : (Math.ceil(count / columns) - 1) * pitch + side;

/**
 * The shape shows the state like the colour: a full square for good, a diamond for bad, a frame for moving, a small square for
 * idle.
 * @returns the path of each state that occurs
 */
export function pathsOf(pods: readonly Pick<PodRow, "health">[], measures: Measures): Partial<Record<Health, string>> {
  const paths: Partial<Record<Health, string>> = {};
  for (const [i, { health }] of pods.entries()) {
    const x = (i % measures.columns) * measures.pitch;
    const y = Math.floor(i / measures.columns) * measures.pitch;
    paths[health] = (paths[health] ?? "") + forms[health](x, y, measures.side);
  }
  return paths;
}

const square = (x: number, y: number, side: number): string => `M${x} ${y}h${side}v${side}h${-side}z`;

const forms: Readonly<Record<Health, (x: number, y: number, side: number) => string>> = {
  good: square,
  bad: (x, y, side) => {
    const half = side / 2;
    return `M${x + half} ${y - 1}l${half + 1} ${half + 1}l${-half - 1} ${half + 1}l${-half - 1} ${-half - 1}z`;
  },
  // Two outlines with the even-odd fill rule give a frame.
  moving: (x, y, side) => square(x, y, side) + square(x + 2, y + 2, side - 4),
  idle: (x, y, side) => square(x + side / 4, y + side / 4, side / 2),
};

/** @returns the index of the square at a point; -1 outside of all squares */
export function squareAt(x: number, y: number, count: number, { columns, pitch }: Measures): number {
  const column = Math.floor(x / pitch);
  const row = Math.floor(y / pitch);
  const index = row * columns + column;
  return x >= 0 && y >= 0 && column < columns && index < count ? index : -1;
}
