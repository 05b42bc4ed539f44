import type { RanFunction } from "./coverage.ts";

interface Figures {
  readonly files: number;
  readonly modules: number;
  readonly functions: number;
}

/** Distinct files and modules of the functions, and the number of functions. */
export function figuresOf(functions: readonly RanFunction[]): Figures {
  const files = new Set(functions.map(({ file }) => file));
  return { files: files.size, modules: new Set([...files].map(moduleOf)).size, functions: functions.length };
}

/** The folder of a package's `src` that a file belongs to: `apiserver/handlers`, `apimachinery/objects`. */
export function moduleOf(file: string): string {
  const [, name, , folder] = file.split("/");
  return `${name}/${folder}`;
}
