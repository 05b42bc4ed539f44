import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Logger } from "../logging/logger.ts";

const run = promisify(execFile);

/**
 * Tells systemd that this service is ready (units with `Type=notify`); does nothing where no NOTIFY_SOCKET is given, and never fails.
 * Node has no datagram sockets, so systemd's own program sends it: as if from us when it runs as root, otherwise the unit needs
 * `NotifyAccess=all`.
 * @param env the process's own, for tests
 * Source: sd_notify(3); coreos/go-systemd daemon.SdNotify
 */
export async function notifySystemd(log: Logger, env: NodeJS.ProcessEnv = process.env): Promise<void> {
  if (!env["NOTIFY_SOCKET"]) return;
  try {
    await run("systemd-notify", ["--ready"], { env });
  } catch (err) {
    log.error("Unable to send systemd daemon successful start message", err);
  }
}
