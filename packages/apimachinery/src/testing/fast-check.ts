/**
 * fast-check with the same values in each run, so that a run fails only for what was changed; with COX_TEST_LONG they are others
 * each time, and a failure prints the seed that repeats it.
 */
import fc from "fast-check";

if (process.env["COX_TEST_LONG"] === undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20211207 });

export default fc;
