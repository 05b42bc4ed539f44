/**
 * How long a wrong token takes says nothing about how much of it was right: Welch's t-test over guesses that share all
 * but the end with a good token, and guesses that share nothing.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { bootstrapToken } from "./bootstrap-token.ts";
import { tokenFile } from "./token-file.ts";

const long = process.env["COX_TEST_LONG"] !== undefined;
const guesses = long ? 1_000_000 : 30_000;
/** A machine that is busy with other things disturbs a short run more. */
const limit = long ? 5 : 10;

/** Of the alphabet of bootstrap tokens. */
const randomText = (length: number): string =>
  [...randomBytes(length)].map((byte) => "abcdefghijklmnopqrstuvwxyz012345"[byte % 32]).join("");

const secret = randomText(16);

const kinds: Record<string, (t: TestContext) => { authenticate: TokenAuthenticator; good: string }> = {
  "a token of a file": (t) => {
    const directory = mkdtempSync(join(tmpdir(), "cox-timing-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const path = join(directory, "tokens.csv");
    const good = `abcdef.${secret}`;
    writeFileSync(path, `${good},jane,1\n`);
    return { authenticate: tokenFile(path, discardLogger), good };
  },
  "a bootstrap token": () => {
    const encode = (text: string): string => Buffer.from(text).toString("base64");
    const data = {
      "token-id": encode("abcdef"),
      "token-secret": encode(secret),
      "usage-bootstrap-authentication": encode("true"),
    };
    const stored = { metadata: { name: "bootstrap-token-abcdef" }, type: "bootstrap.kubernetes.io/token", data };
    return { authenticate: bootstrapToken({ get: async () => stored as never }, realClock), good: `abcdef.${secret}` };
  },
};

for (const [name, make] of Object.entries(kinds)) {
  test(`guesses at ${name} take as long whether they are near or far`, async (t) => {
    const { authenticate, good } = make(t);
    assert.ok(await authenticate(good, undefined), "the good one is good");
    const near = (): string => good.slice(0, -3) + randomText(3);
    const far = (): string => good.slice(0, 7) + randomText(good.length - 7);
    const samples = { near: newSample(), far: newSample() };
    for (let i = 0; i < guesses; i++) {
      const isNear = (randomBytes(1)[0] as number) % 2 === 0;
      const guess = isNear ? near() : far();
      const began = process.hrtime.bigint();
      await authenticate(guess, undefined);
      const tookNs = Number(process.hrtime.bigint() - began);
      // Pauses of the garbage collector and of the machine are no answer of ours.
      if (i > guesses / 10 && tookNs < 100_000) (isNear ? samples.near : samples.far).add(tookNs);
    }
    const score = Math.abs(welch(samples.near, samples.far));
    t.diagnostic(`t = ${score.toFixed(2)}`);
    assert.ok(score < limit, `t = ${score}`);
  });
}

interface Sample {
  count: number;
  mean: number;
  /** Sum of squared differences from the mean. */
  spread: number;
  add(value: number): void;
}

/** Source: Welford's algorithm */
function newSample(): Sample {
  return {
    count: 0,
    mean: 0,
    spread: 0,
    add(value) {
      this.count++;
      const before = value - this.mean;
      this.mean += before / this.count;
      this.spread += before * (value - this.mean);
    },
  };
}

function welch(a: Sample, b: Sample): number {
  const error = ({ count, spread }: Sample): number => spread / (count - 1) / count;
  return (a.mean - b.mean) / Math.sqrt(error(a) + error(b));
}
