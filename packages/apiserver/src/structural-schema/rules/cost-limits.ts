/**
 * Cost limits of the validation rules of custom resources, in steps (`Budget`). An error message contains the value and costs one
 * step per character; otherwise many failing rules would repeat a large object in the response.
 * Upstream has no limit in 1.23; the error texts are those of later releases.
 */

/** Limit of one rule on one value: about 0.1 s. */
export const maxStepsPerRule = 1_000_000;

/** All rules on one object: about 0.3 s. */
export const maxStepsPerObject = 3_000_000;
