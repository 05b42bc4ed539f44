import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Logger } from "../process/logging/logger.ts";

const run = promisify(execFile);

/**
 * Notifies systemd that this service is ready (`Type=notify`). Does nothing without NOTIFY_SOCKET, and never fails. Node has no
 * datagram sockets, so `systemd-notify` sends the message: in the name of this process when it runs as root, otherwise the unit
 * needs `NotifyAccess=all`.
 * @param env for tests; default the environment of the process
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
