import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

const intervalMs = 1_000;
const timeoutMs = 10_000;

/**
 * Waits until the API server is healthy, before controllers start. It has responded before, since the lease was acquired.
 * @throws Error when it is not healthy within 10 s; the process is then restarted by its supervisor
 * Source: cmd/kube-controller-manager/app/controllermanager.go, k8s.io/controller-manager app.WaitForAPIServer
 */
export async function requireHealthyServer(client: Client, clock: Clock, log: Logger, signal: AbortSignal): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    const problem = await problemOf(client, clock, signal);
    if (problem === undefined) return;
    log.warn("APIServer isn't healthy yet. Waiting a little while.", { problem });
    if (clock.monotonic() + intervalMs > deadline) {
      const why = `timed out waiting for the condition: ${problem}`;
      throw new Error(`error building controller context: failed to wait for apiserver being healthy: ${why}`);
    }
    await clock.sleep(intervalMs, signal);
  }
}

async function problemOf(client: Client, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const attempt = new AbortController();
  const timer = clock.after(timeoutMs, () => attempt.abort(new Error("no answer within 10 s")));
  try {
    const { status, body } = await client.raw("GET", "/healthz", { signal: AbortSignal.any([signal, attempt.signal]) });
    return status === 200 ? undefined : `APIServer isn't healthy: ${body.toString("utf8")}`;
  } catch (err) {
    signal.throwIfAborted();
    return `failed to get apiserver /healthz status: ${messageOf(err)}`;
  } finally {
    timer.cancel();
  }
}
