/**
 * Node has four threads for files. A volume that does not respond, such as that of a storage server that has gone, holds one for each call, so
 * that four of them would stop the agent. Must be called before the first of these calls.
 */
export function addFileThreads(env: Record<string, string | undefined>): void {
  env["UV_THREADPOOL_SIZE"] ??= "32";
}
