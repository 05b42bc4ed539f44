import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "./client.ts";
import { complaintAbout } from "./judge.ts";
import { newSteps, type Step } from "./requests.ts";
import { readSurface } from "./surface.ts";

interface WalkOptions {
  readonly seed: number;
  readonly count: number;
  /** Number of the first request; default 0. */
  readonly from?: number;
  /** Concurrent requests; default 8. */
  readonly lanes?: number;
  /** Time after which no new request is sent. */
  readonly limitMs?: number;
}

interface Finding {
  readonly step: Step;
  readonly complaint: string;
}

interface WalkReport {
  readonly sent: number;
  /** Number of responses by status code. */
  readonly codes: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

/** Runs a walk and deletes its namespace with all contents. */
export async function walk(client: Client, options: WalkOptions): Promise<WalkReport> {
  // Unique, because the namespace of an earlier walk may still be terminating.
  const namespace = `walk-${options.seed}-${Date.now().toString(36)}`;
  await write(client, "POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  // Limits the number of Pods; none of them can be scheduled.
  await write(client, "POST", `/api/v1/namespaces/${namespace}/resourcequotas`, {
    ...{ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "walk" } },
    spec: { hard: { pods: "3" } },
  });
  try {
    const surface = await readSurface(client);
    const stepsAt = newSteps({ seed: options.seed, surface, namespace });
    return await sendAll(client, stepsAt, options);
  } finally {
    await write(client, "DELETE", `/api/v1/namespaces/${namespace}`, {});
  }
}

async function write(client: Client, method: string, path: string, object: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await client.send({ method, path, headers, body: Buffer.from(JSON.stringify(object)) });
  if (answer.code >= 400 && answer.code !== 409) throw new Error(`${method} ${path}: ${answer.code} ${answer.text}`);
}

async function sendAll(client: Client, stepsAt: (number: number) => readonly Step[], options: WalkOptions): Promise<WalkReport> {
  const report: { sent: number; codes: Record<string, number>; findings: Finding[] } = { sent: 0, codes: {}, findings: [] };
  const end = Date.now() + (options.limitMs ?? Number.POSITIVE_INFINITY);
  let next = options.from ?? 0;
  const behind = next + options.count;
  const lane = async (): Promise<void> => {
    while (next < behind && Date.now() < end) {
      for (const step of stepsAt(next++)) {
        const outcome = await sendOne(client, step);
        report.sent++;
        report.codes[outcome.code] = (report.codes[outcome.code] ?? 0) + 1;
        if (outcome.complaint !== undefined) report.findings.push({ step, complaint: outcome.complaint });
      }
    }
  };
  await Promise.all(Array.from({ length: options.lanes ?? 8 }, lane));
  report.findings.sort((a, b) => a.step.number - b.step.number);
  return report;
}

/** Retries after 429, so that the request's actual result is checked. */
async function sendOne(client: Client, step: Step): Promise<{ code: string; complaint?: string | undefined }> {
  try {
    let answer = await client.send(step);
    for (let times = 0; answer.code === 429 && times < 5 && !answer.text.includes("disruption"); times++) {
      await delay(200);
      answer = await client.send(step);
    }
    return { code: String(answer.code), complaint: complaintAbout(step, answer) };
  } catch (err) {
    // Bodies over the limit are rejected during the upload; the response may be lost with the connection.
    if ((step.body?.length ?? 0) > 3 << 20 && /EPIPE|ECONNRESET/.test((err as Error).message)) return { code: "413" }; // cast: Node's client throws Errors
    return { code: "none", complaint: `no answer: ${(err as Error).message}` }; // cast: Node's client throws Errors
  }
}

/** One line per finding, with the data needed to reproduce it. */
export function describe({ step, complaint }: Finding): string {
  const body = step.body === undefined ? "" : ` body=${step.body.subarray(0, 300).toString()}`;
  return `#${step.number} ${step.quality} ${step.method} ${step.path.slice(0, 300)} ${JSON.stringify(step.headers).slice(0, 200)}${body}\n    ${complaint}`;
}
