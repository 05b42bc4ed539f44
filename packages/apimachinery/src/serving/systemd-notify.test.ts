import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { discardLogger } from "../process/logging/logger.ts";
import { waitFor } from "../testing/wait-for.ts";
import { notifySystemd } from "./systemd-notify.ts";

const has = (program: string): boolean => {
  try {
    execFileSync("which", [program], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
const missing = ["systemd-notify", "python3"].filter((program) => !has(program));

const receiver = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print(s.recv(4096).decode(), flush=True)
`;

test("systemd is notified that the service is ready", { skip: missing.length > 0 && `no ${missing}` }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-notify-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const socket = join(folder, "socket");
  const child = spawn("python3", ["-c", receiver, socket], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  let heard = "";
  child.stdout.on("data", (chunk: Buffer) => {
    heard += chunk.toString();
  });
  await waitFor(() => existsSync(socket));
  await notifySystemd(discardLogger, { ...process.env, NOTIFY_SOCKET: socket });
  await waitFor(() => heard.split("\n").includes("READY=1"));
});

test("without a listener on the notification socket the service continues and logs the failure", async () => {
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  await notifySystemd(log, { PATH: process.env["PATH"] });
  assert.deepEqual(errors, []);
  await notifySystemd(log, { PATH: "/nonexistent", NOTIFY_SOCKET: "/nonexistent/socket" });
  assert.deepEqual(errors, ["Unable to send systemd daemon successful start message"]);
});
