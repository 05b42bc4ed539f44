/** True when `dryRun` of the write options is set. Validation only accepts `All`, so any value means dry run. */
export function isDryRun(options: { dryRun?: readonly string[] | undefined }): boolean {
  return (options.dryRun?.length ?? 0) > 0;
}
