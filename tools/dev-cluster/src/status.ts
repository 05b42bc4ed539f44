import { certificateProblem } from "./pki.ts";
import { runningPid } from "./processes.ts";
import type { Settings } from "./settings.ts";
import { adminClient, processNames } from "./up.ts";

/** Prints what runs and whether the API is ready. @returns 0 when all of it does, else 1. */
export async function status(settings: Settings): Promise<number> {
  let complete = true;
  for (const name of processNames(settings)) {
    const pid = runningPid(settings, name);
    complete &&= pid !== undefined;
    console.log(`${name.padEnd(24)} ${pid === undefined ? "not running" : `running, pid ${pid}`}`);
  }
  if (runningPid(settings, "kube-apiserver") === undefined) return 1;
  const client = await adminClient(settings);
  try {
    const answer = await client.raw("GET", "/readyz?verbose");
    console.log(answer.status === 200 ? "the API server is ready" : answer.body.toString());
    return complete && answer.status === 200 ? 0 : 1;
  } catch (err) {
    console.log(`the API server does not answer: ${certificateProblem(settings) ?? (err as Error).message}`);
    return 1;
  } finally {
    client.close();
  }
}
