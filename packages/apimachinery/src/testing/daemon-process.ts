import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

interface Test {
  after(fn: () => unknown): void;
}

/** A folder that is removed at the end of the test. */
export async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "cox-daemon-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a daemon's `main.ts` as a process, for 30 s at most. `ended` resolves with its exit code and all that it has written. */
export function runDaemon(t: Test, main: string, ...flags: string[]) {
  const child = spawn(process.execPath, ["-C", "cox-source", main, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 30_000,
  });
  t.after(() => void child.kill("SIGKILL"));
  const exited = Promise.withResolvers<number | null>();
  child.once("exit", exited.resolve);
  const ended = Promise.all([exited.promise, text(child.stdout), text(child.stderr)]).then(([code, out, err]) => ({
    code,
    said: out + err,
  }));
  return { child, ended };
}

/** Writes a kubeconfig for the server. @returns its path */
export async function writeKubeconfig(folder: string, server: string, caData?: string): Promise<string> {
  const file = join(folder, "kubeconfig");
  const config = {
    clusters: [{ name: "c", cluster: { server, ...(caData !== undefined && { "certificate-authority-data": caData }) } }],
    contexts: [{ name: "x", context: { cluster: "c" } }],
    "current-context": "x",
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

/** The body that a daemon answers on its secure port; undefined while it does not serve. */
export async function askDaemon(port: number, path: string): Promise<string | undefined> {
  const request = get({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false });
  try {
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    return await text(response);
  } catch {
    return undefined;
  }
}
