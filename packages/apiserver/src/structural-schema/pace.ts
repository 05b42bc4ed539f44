/** Counts the schemas that a walk has checked, so that a walk over many yields to the event loop. */
export interface Pace {
  checked: number;
}

/** Schemas that are checked between two yields. */
const checkedPerStep = 512;

/** The pace of one walk; it is passed down to all parts of the walk. */
export const newPace = (): Pace => ({ checked: 0 });

/** Call for each schema. @returns true when the caller should yield to the event loop */
export const endsStep = (pace: Pace): boolean => ++pace.checked % checkedPerStep === 0;
