/**
 * Node flags for programs of this repository that a test starts. Includes this process's preloads: under `./cox test` the compile cache,
 * which halves the CPU time of a short command.
 */
export const nodeFlags: readonly string[] = [
  "-C",
  "cox-source",
  ...process.execArgv.filter((flag) => flag.startsWith("--import=")),
];
