/**
 * fast-check with a fixed seed, so that a run fails only because of a change; with COX_TEST_LONG the seed is random, and a failure
 * prints it for reproduction.
 */
import fc from "fast-check";

if (process.env["COX_TEST_LONG"] === undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20211207 });

export default fc;
