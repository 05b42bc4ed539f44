import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { Failure, Interrupted, type Progress } from "./failure.ts";
import { logFile } from "./processes.ts";
import { defaultChoices, newSettings } from "./settings.ts";
import type { ProcessState } from "./supervisor-decisions.ts";
import { writeState } from "./supervisor-state.ts";
import { newWatch, type Watch } from "./watch.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const beganMs = 1_600_000_000_000;

interface Fixture {
  readonly watch: Watch;
  readonly steps: string[];
  readonly controller: AbortController;
  readonly folder: string;
  /** Lasts until the next question is due. */
  passMs: number;
  /** Records the last unrequested end of a process. */
  ended(name: string, atMs: number, quickEnds: number, reason?: string): void;
}

function newFixture(t: TestContext): Fixture {
  const folder = mkdtempSync(join(tmpdir(), "cox-watch-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["run", "logs"]) mkdirSync(join(folder, name));
  const settings = newSettings(root, "default", folder, defaultChoices(), {});
  const steps: string[] = [];
  const controller = new AbortController();
  const progress: Progress = { step: (text) => void steps.push(text), signal: controller.signal };
  const processes: Record<string, { spec: { name: string; command: string; args: string[] }; state: ProcessState }> = {};
  let elapsedMs = 0;
  const fixture: Fixture = {
    watch: newWatch(settings, progress, {
      wallClock: () => beganMs,
      elapsed: () => elapsedMs,
      async pause(ms) {
        assert.equal(ms, 50);
        elapsedMs += fixture.passMs;
      },
    }),
    steps,
    controller,
    folder,
    passMs: 50,
    ended(name, at, quickEnds, reason = "exit code 1") {
      const state: ProcessState = { phase: "waiting", since: at, restarts: quickEnds, quickEnds, lastEnd: { at, reason } };
      processes[name] = { spec: { name, command: name, args: [] }, state };
      writeState(settings, { supervisor: { pid: 1, startTime: "1", since: 0, version: "" }, processes });
    },
  };
  return fixture;
}

/** Answers each question with the next reason; the last one stays. */
const answers = (...reasons: (string | undefined | (() => string | undefined))[]): (() => Promise<string | undefined>) => {
  let asked = 0;
  return async () => {
    const reason = reasons[Math.min(asked++, reasons.length - 1)];
    return typeof reason === "function" ? reason() : reason;
  };
};

test("a watch asks until the condition holds, and reports each end of a process once", async (t) => {
  const { watch, steps, ended } = newFixture(t);
  const ends = (name: string, at: number, quickEnds: number, reason?: string) => () => {
    ended(name, beganMs + at, quickEnds, reason);
    return "not yet";
  };
  await watch.until(
    "it is ready",
    answers("not yet", ends("etcd", 0, 1), "not yet", ends("etcd", 7, 2, "killed"), ends("kubelet", 7, 1), "not yet", undefined),
  );
  assert.deepEqual(steps, ["etcd ended: exit code 1", "etcd ended: killed", "kubelet ended: exit code 1"]);
});

test("an end before the watch began is not reported, however many there were", async (t) => {
  const { watch, steps, ended } = newFixture(t);
  ended("etcd", beganMs - 1, 9);
  await watch.until("it is ready", answers("not yet", "not yet", undefined));
  assert.deepEqual(steps, []);
});

test("a process that ends three times in a row fails the watch, with the end of its log; other waits fail too", async (t) => {
  const { watch, steps, ended, folder } = newFixture(t);
  const log = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  writeFileSync(logFile({ state: folder }, "etcd"), `${log.join("\n")}\n`);
  ended("etcd", beganMs, 2);
  const wait = watch.until(
    "it is ready",
    answers("not yet", () => {
      ended("etcd", beganMs + 1, 3);
      return "not yet";
    }),
  );
  let asked = false;
  const message = `etcd ended 3 times: exit code 1\nthe end of ${folder}/logs/etcd.log:\n${log.slice(5).join("\n")}`;
  await assert.rejects(wait, (err) => err instanceof Failure && err.message === message);
  await assert.rejects(
    watch.until("another", async () => {
      asked = true;
      return undefined;
    }),
    { message },
  );
  assert.equal(asked, false);
  assert.deepEqual(steps, ["etcd ended: exit code 1", "etcd ended: exit code 1"]);
});

test("a watch ends after three minutes, counted from its begin, with the last reason", async (t) => {
  const fixture = newFixture(t);
  const { watch } = fixture;
  fixture.passMs = 90_000;
  await watch.until("one", answers("not yet", undefined));
  await assert.rejects(watch.until("etcd is ready", answers("after 90 s", "after 180 s", "later", "never asked")), {
    message: "etcd is ready: not within 180 s: later",
  });
});

test("an expired certificate is the reason of a failure, rather than what it led to", async (t) => {
  const { certPem } = await newCa({ commonName: "kubernetes", now: 0 }); // ten years from 1970
  for (const fails of ["by an end", "by time"]) {
    const fixture = newFixture(t);
    mkdirSync(join(fixture.folder, "pki"));
    writeFileSync(join(fixture.folder, "pki", "ca.crt"), certPem);
    if (fails === "by an end") fixture.ended("etcd", beganMs, 3);
    fixture.passMs = 200_000;
    await assert.rejects(fixture.watch.until("one", answers("not yet")), {
      message: /^\S*pki\/ca\.crt .*expired on 1979-12-30T00:00:00Z\nrenew them: \.\/cox certs renew$/,
    });
  }
});

test("Ctrl-C ends a watch before its next question, and the failure of a question ends it too", async (t) => {
  const { watch, controller } = newFixture(t);
  let asked = 0;
  const wait = watch.until("one", async () => {
    asked++;
    controller.abort(new Interrupted("SIGINT"));
    return "not yet";
  });
  await assert.rejects(wait, { message: "stopped by SIGINT", exitCode: 130 });
  assert.equal(asked, 1);
  const other = newFixture(t).watch;
  await assert.rejects(
    other.until("one", async () => {
      throw new Error("no");
    }),
    { message: "no" },
  );
  await assert.rejects(other.until("two", answers(undefined)), { message: "no" }, "the first failure is the one that counts");
});

test("of two waits that fail at once, both report the first failure", async (t) => {
  const { watch } = newFixture(t);
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const waits = [watch.until("one", () => first.promise), watch.until("two", () => second.promise)];
  first.reject(new Error("the reason"));
  await assert.rejects(waits[0]!, { message: "the reason" });
  second.reject(new Error("what followed"));
  await assert.rejects(waits[1]!, { message: "the reason" });
});
