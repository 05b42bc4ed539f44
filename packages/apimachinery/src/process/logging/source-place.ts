/** A source location. */
interface SourcePlace {
  readonly file: string;
  readonly line: number;
}

/**
 * Maps a stack frame to its source location; here the identity. Bundles replace this module with one that knows the original
 * lines.
 */
export function sourcePlace(file: string, line: number): SourcePlace {
  return { file, line };
}
