/** What an assertion is about. */
export interface ObjectTarget {
  readonly namespace?: string | undefined;
  readonly name: string;
}
