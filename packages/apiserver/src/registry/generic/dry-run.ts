/** `dryRun` of write options: only `All` passes validation, so any value means that nothing is stored. */
export function isDryRun(options: { dryRun?: readonly string[] | undefined }): boolean {
  return (options.dryRun?.length ?? 0) > 0;
}
