/** Where in the sources a call stands. */
export interface SourcePlace {
  readonly file: string;
  readonly line: number;
}

/** The place of a stack frame: as V8 has it. Bundles have a module of their own here that knows which source a line was made from. */
export function sourcePlace(file: string, line: number): SourcePlace {
  return { file, line };
}
