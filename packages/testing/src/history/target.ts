/** The object of an assertion. */
export interface ObjectTarget {
  readonly namespace?: string | undefined;
  readonly name: string;
}
