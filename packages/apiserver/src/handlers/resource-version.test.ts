import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { WatchEventDecoder } from "@coxswain/apimachinery/objects/codec/stream";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Answer, aConfigMap, startShared, type TestServer } from "./testing.ts";

const maps = "/api/v1/namespaces/versions/configmaps";
const all = ["a", "b", "c", "d", "e"];
type Meaning = "most recent" | "any" | "not older" | "exact" | "token" | "422" | "400";

/** The tables of the concept page "Kubernetes API Concepts", section Resource versions. */
const lists: readonly { match?: string; limit?: boolean; token?: boolean; version: "" | "0" | "other"; means: Meaning }[] = [
  { version: "", means: "most recent" },
  { version: "0", means: "any" },
  { version: "other", means: "not older" },
  { limit: true, version: "", means: "most recent" },
  { limit: true, version: "0", means: "any" },
  { limit: true, version: "other", means: "exact" },
  { limit: true, token: true, version: "", means: "token" },
  { limit: true, token: true, version: "0", means: "token" },
  { limit: true, token: true, version: "other", means: "400" },
  { match: "Exact", version: "", means: "422" },
  { match: "Exact", version: "0", means: "422" },
  { match: "Exact", version: "other", means: "exact" },
  { match: "Exact", limit: true, version: "", means: "422" },
  { match: "Exact", limit: true, version: "0", means: "422" },
  { match: "Exact", limit: true, version: "other", means: "exact" },
  { match: "NotOlderThan", version: "", means: "422" },
  { match: "NotOlderThan", version: "0", means: "any" },
  { match: "NotOlderThan", version: "other", means: "not older" },
  { match: "NotOlderThan", limit: true, version: "", means: "422" },
  { match: "NotOlderThan", limit: true, version: "0", means: "any" },
  { match: "NotOlderThan", limit: true, version: "other", means: "not older" },
];

for (const cached of [true, false]) {
  const where = cached ? "from the cache" : "from etcd";
  describe(where, () => {
    let server: TestServer;
    /** Revisions after three of five objects, and after all. */
    let then: string;
    let now: string;
    let token: string;
    let future: string;
    before(async () => {
      server = await startShared(cached ? [] : ["--watch-cache=false"]);
      await server.request("POST", "/api/v1/namespaces", { metadata: { name: "versions" } });
      for (const name of all) {
        const { code, body } = await server.request("POST", maps, aConfigMap(name));
        assert.equal(code, 201);
        if (name === "c") {
          then = body.metadata.resourceVersion;
          token = (await server.request("GET", `${maps}?limit=1`)).body.metadata.continue;
        }
        now = body.metadata.resourceVersion;
      }
      future = String(Number(now) + 1_000_000);
    });
    after(() => server.stop());

    const names = ({ body }: Answer): string[] => body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    const ours = (answer: Answer): string[] => names(answer).filter((name) => all.includes(name));

    for (const { match, limit, token: withToken, version, means } of lists) {
      const cell = [match ?? "", limit ? "limit" : "", withToken ? "continue" : "", `version ${version || "unset"}`]
        .filter((word) => word !== "")
        .join(", ");
      test(`list, ${cell}: ${means}, ${where}`, async () => {
        const listAt = (resourceVersion: string, pageSize = 2) => {
          const query = new URLSearchParams({
            ...(match && { resourceVersionMatch: match }),
            ...(limit && { limit: String(pageSize) }),
            ...(withToken && { continue: token }),
            ...(resourceVersion && { resourceVersion }),
          });
          return server.request("GET", `${maps}?${query}`);
        };
        const requested = version === "other" ? then : version;
        const answer = await listAt(requested);
        const seen = Number(answer.body.metadata?.resourceVersion);
        switch (means) {
          case "422":
            assert.equal(answer.code, 422);
            hasFields(answer.body, {
              reason: "Invalid",
              details: { group: "meta.k8s.io", kind: "ListOptions", causes: [{ field: "resourceVersionMatch" }] },
            });
            break;
          case "400":
            assert.equal(answer.code, 400);
            assert.equal(answer.body.message, "specifying resource version is not allowed when using continue");
            break;
          case "token":
            assert.equal(answer.code, 200);
            assert.equal(answer.body.metadata.resourceVersion, then);
            assert.ok(names(answer).every((name) => name !== "d" && name !== "e"));
            break;
          case "exact":
            assert.equal(answer.code, 200);
            assert.equal(answer.body.metadata.resourceVersion, then);
            assert.deepEqual(ours(await listAt(then, 50)), ["a", "b", "c"]);
            assert.equal(answer.body.metadata.continue !== undefined, limit === true);
            break;
          case "most recent":
            assert.ok(seen >= Number(now));
            assert.equal(answer.body.metadata.continue !== undefined, limit === true);
            assert.deepEqual(ours(await listAt("", 50)), all);
            break;
          case "not older":
            assert.ok(seen >= Number(then));
            assert.ok(Number((await listAt(now)).body.metadata.resourceVersion) >= Number(now));
            assert.deepEqual(ours(await listAt(now, 50)), all);
            assert.equal(answer.body.metadata.continue !== undefined, limit === true);
            hasFields((await listAt(future)).body, {
              code: 504,
              reason: "Timeout",
              details: { causes: [{ message: "Too large resource version", reason: "ResourceVersionTooLarge" }] },
            });
            break;
          default:
            assert.equal(answer.code, 200);
            await waitFor(async () => ours(await listAt("0", 50)).length === all.length);
        }
      });
    }

    test(`get, version unset: most recent, ${where}`, async () => {
      const written = await server.request("PUT", `${maps}/a`, aConfigMap("a", { changed: "yes" }));
      const { body } = await server.request("GET", `${maps}/a`);
      assert.equal(body.metadata.resourceVersion, written.body.metadata.resourceVersion);
    });
    test(`get, version 0: any, ${where}`, async () => {
      const { code, body } = await server.request("GET", `${maps}/b?resourceVersion=0`);
      assert.equal(code, 200);
      assert.equal(body.metadata.name, "b");
    });
    test(`get, version other: not older, ${where}`, async () => {
      assert.equal((await server.request("GET", `${maps}/e?resourceVersion=${now}`)).code, 200);
      const { code, body } = await server.request("GET", `${maps}/e?resourceVersion=${future}`);
      assert.equal(code, 504);
      assert.match(body.message, /^Timeout: Too large resource version: \d+, current: \d+$/);
    });

    for (const { version, means } of [
      { version: "", means: "what is there comes first" },
      { version: "0", means: "what is there comes first" },
      { version: "other", means: "only what came later" },
    ]) {
      test(`watch, version ${version || "unset"}: ${means}, ${where}`, async () => {
        const since = version === "other" ? then : version;
        const { code, raw } = await server.request("GET", `${maps}?watch=1&timeoutSeconds=1&resourceVersion=${since}`);
        assert.equal(code, 200);
        const events = new WatchEventDecoder("application/json").push(raw);
        const added = events.filter(({ type }) => type === "ADDED").map(({ object }) => object.metadata.name as string);
        assert.deepEqual(added.filter((name) => all.includes(name)).toSorted(), version === "other" ? ["d", "e"] : all);
      });
    }
  });
}
