import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { reviewToken } from "./review.ts";

const robot = { name: "robot", uid: "", groups: [] };
const person = { name: "person", uid: "7", groups: ["g"], extra: { scopes: ["a", "b"] } };

/** Results of the authenticators and the resulting status of the review. */
const rows: readonly { name: string; answer: () => unknown; spec?: object; want: object }[] = [
  { name: "an unknown token", answer: () => undefined, want: {} },
  {
    name: "a token of somebody with a name only",
    answer: () => ({ user: robot }),
    want: { authenticated: true, user: { username: "robot" } },
  },
  {
    name: "a token of somebody of whom all is known, for an audience",
    answer: () => ({ user: person, audiences: ["here"] }),
    spec: { token: "t", audiences: ["here", "there"] },
    want: {
      authenticated: true,
      user: { username: "person", uid: "7", groups: ["g"], extra: { scopes: ["a", "b"] } },
      audiences: ["here"],
    },
  },
  {
    name: "a token that cannot be judged",
    answer() {
      throw new Error("token has expired");
    },
    want: { error: "token has expired" },
  },
];

for (const { name, answer, spec = { token: "t" }, want } of rows) {
  test(`tokenreviews.authentication.k8s.io: of ${name}`, async () => {
    const requests: unknown[] = [];
    const authenticateToken = async (...args: unknown[]) => {
      requests.push(args);
      return answer();
    };
    const review = await sent({ spec }, { authenticateToken });
    assert.deepEqual(review.status, want);
    assert.deepEqual(requests, [["t", (spec as { audiences?: string[] }).audiences ?? []]]);
  });
}

for (const [name, body] of [
  ["nothing", undefined],
  ["no token", { spec: {} }],
  ["an empty token", { spec: { token: "", audiences: ["a"] } }],
] as const) {
  test(`tokenreviews.authentication.k8s.io: create refuses ${name}`, async () => {
    const want = { code: 400, message: "token is required for TokenReview in authentication" };
    await assert.rejects(sent(body, {}), want);
  });
}

test("tokenreviews.authentication.k8s.io: says nothing where no authenticator is configured", async () => {
  assert.deepEqual((await sent({ spec: { token: "t" } }, {})).status, {});
});

function sent(body: object | undefined, services: object): Promise<KubeObject & { status?: object }> {
  return reviewToken({ body, services, admit: async () => {} } as never);
}
