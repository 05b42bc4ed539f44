/** Floods of valid requests. */
import { attacked, type Case, type RequestOptions, type UserName } from "../case.ts";

const maps = `${attacked}/configmaps`;

interface Flood {
  readonly name: string;
  readonly user: UserName;
  readonly lanes?: number;
  request(lane: number, round: number): readonly [method: string, path: string, options?: RequestOptions];
  readonly setup?: Case["setup"];
  readonly cleanup?: Case["cleanup"];
}

const flood = ({ name, user, lanes = 30, request, setup, cleanup }: Flood): Case => ({
  name,
  user,
  ...(setup && { setup }),
  ...(cleanup && { cleanup }),
  run: (attack) => attack.repeat(lanes, (lane, round) => attack.request(...request(lane, round))),
});

const json = (object: object): RequestOptions => ({ body: object });
const emptied: Case["cleanup"] = (attack) => attack.removeAll(maps);
const filled: Case["setup"] = async (attack) => {
  for (let at = 0; at < 500; at += 50) {
    const names = Array.from({ length: 50 }, (_, i) => `m-${at + i}`);
    await Promise.all(
      names.map((name) => attack.prepare("POST", maps, json({ metadata: { name, labels: { name } }, data: { a: name } }))),
    );
  }
};
const selector = (terms: number): string =>
  encodeURIComponent(Array.from({ length: terms }, (_, i) => `k${i} notin (a,b)`).join(","));
const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
const badTokens = ["x", "e30", "A".repeat(5000), encodeURIComponent('{"v":"meta.k8s.io/v1","rv":9e99,"start":"a"}')];
const review = (group: string, kind: string, spec: object): RequestOptions => json({ apiVersion: `${group}/v1`, kind, spec });

export const floodCases: readonly Case[] = [
  flood({ name: "anonymous GET", user: "anonymous", request: () => ["GET", maps] }),
  flood({ name: "GET of what is not there", user: "ordinary", request: (l, r) => ["GET", `${maps}/none-${l}-${r}`] }),
  flood({
    name: "GET with tokens that are wrong",
    user: "anonymous",
    request: (l, r) => ["GET", maps, { headers: { authorization: `Bearer ${l}.${r}.${"a".repeat(500)}` } }],
  }),
  flood({
    name: "GET with forged tokens of service accounts",
    user: "anonymous",
    request: (l, r) => ["GET", maps, { headers: { authorization: `Bearer ${forged(`${l}-${r}`)}` } }],
  }),
  flood({ name: "LIST of 500 objects", user: "account", setup: filled, cleanup: emptied, request: () => ["GET", maps] }),
  flood({
    name: "tables of 500 objects",
    user: "ordinary",
    setup: filled,
    cleanup: emptied,
    request: () => ["GET", maps, { headers: table }],
  }),
  flood({
    name: "selectors of 3,000 terms over 500 objects",
    user: "ordinary",
    lanes: 10,
    setup: filled,
    cleanup: emptied,
    request: () => ["GET", `${maps}?labelSelector=${selector(300)}`],
  }),
  flood({
    name: "continue tokens that are wrong",
    user: "ordinary",
    request: (l, r) => ["GET", `${maps}?limit=1&continue=${badTokens[(l + r) % badTokens.length]}`],
  }),
  flood({ name: "pages of one", user: "ordinary", setup: filled, cleanup: emptied, request: () => ["GET", `${maps}?limit=1`] }),
  flood({
    name: "revisions that are wrong",
    user: "ordinary",
    request: (_l, r) => [
      "GET",
      `${maps}?resourceVersion=${["-1", "99999999999", "x", "1"][r % 4]}&resourceVersionMatch=${["Exact", "NotOlderThan"][r % 2]}&timeoutSeconds=1`,
    ],
  }),
  flood({
    name: "creates",
    user: "ordinary",
    cleanup: emptied,
    request: () => ["POST", maps, json({ metadata: { generateName: "c-" } })],
  }),
  flood({
    name: "creates in an audited namespace",
    user: "owner",
    cleanup: (attack) => attack.removeAll("/api/v1/namespaces/audited/configmaps"),
    request: () => [
      "POST",
      "/api/v1/namespaces/audited/configmaps",
      json({ metadata: { generateName: "c-" }, data: { a: "x".repeat(20_000) } }),
    ],
  }),
  flood({
    name: "ConfigMaps of 1 MB while 20 watch",
    user: "ordinary",
    lanes: 3,
    async setup(attack) {
      for (let at = 0; at < 3; at++) await attack.prepare("POST", maps, json({ metadata: { name: `big-${at}` } }));
    },
    cleanup: emptied,
    request: (l, r) => [
      "PUT",
      `${maps}/big-${l}`,
      json({ metadata: { name: `big-${l}` }, data: { a: `${r}${"x".repeat(900_000)}` } }),
    ],
  }),
  flood({
    name: "conflicting writes of one object",
    user: "ordinary",
    cleanup: emptied,
    setup: (attack) => attack.prepare("POST", maps, json({ metadata: { name: "one" } })),
    request: (l, r) => [
      "PATCH",
      `${maps}/one`,
      { type: "application/merge-patch+json", body: { data: { [`k${l}`]: String(r) } } },
    ],
  }),
  flood({ name: "deletes of collections", user: "ordinary", request: () => ["DELETE", maps] }),
  {
    name: "watches that begin and end",
    user: "ordinary",
    setup: filled,
    cleanup: emptied,
    run: (attack) =>
      attack.repeat(20, () =>
        attack.request("GET", `${maps}?watch=true&timeoutSeconds=0&resourceVersion=${1 + Math.floor(Math.random() * 3)}`),
      ),
  },
  flood({ name: "/openapi/v2", user: "ordinary", lanes: 10, request: () => ["GET", "/openapi/v2"] }),
  flood({
    name: "/openapi/v2 in forms that differ",
    user: "ordinary",
    lanes: 10,
    request: (_l, r) => [
      "GET",
      "/openapi/v2",
      {
        headers: {
          accept: r % 2 === 0 ? "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" : "*/*",
          "accept-encoding": "gzip",
        },
      },
    ],
  }),
  flood({ name: "/metrics", user: "platform", lanes: 10, request: () => ["GET", "/metrics"] }),
  flood({
    name: "discovery",
    user: "ordinary",
    request: (_l, r) => ["GET", ["/api", "/apis", "/api/v1", "/apis/apps/v1"][r % 4] as string],
  }),
  flood({
    name: "anonymous health",
    user: "anonymous",
    request: (_l, r) => ["GET", ["/livez?verbose", "/readyz?verbose", "/healthz"][r % 3] as string],
  }),
  flood({
    name: "invented paths, verbs and user agents",
    user: "ordinary",
    request: (l, r) => [
      ["GET", "BREW", "OPTIONS", "TRACE"][r % 4] as string,
      `/p${l}/${r}?q=${r}`,
      { headers: { "user-agent": `a${l}-${r}` } },
    ],
  }),
  flood({
    name: "TokenReviews",
    user: "platform",
    request: (l, r) => [
      "POST",
      "/apis/authentication.k8s.io/v1/tokenreviews",
      review("authentication.k8s.io", "TokenReview", { token: forged(`${l}${r}`) }),
    ],
  }),
  flood({
    name: "SelfSubjectAccessReviews",
    user: "ordinary",
    request: (l, r) => [
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      review("authorization.k8s.io", "SelfSubjectAccessReview", { resourceAttributes: { verb: `v${r}`, resource: `r${l}` } }),
    ],
  }),
  flood({
    name: "SelfSubjectRulesReviews",
    user: "owner",
    request: () => [
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      review("authorization.k8s.io", "SelfSubjectRulesReview", { namespace: "attacked" }),
    ],
  }),
  flood({
    name: "tokens of service accounts",
    user: "owner",
    request: () => ["POST", `${attacked}/serviceaccounts/robot/token`, review("authentication.k8s.io", "TokenRequest", {})],
  }),
  flood({
    name: "events",
    user: "owner",
    cleanup: (attack) => attack.removeAll(`${attacked}/events`),
    request: (l, r) => [
      "POST",
      `${attacked}/events`,
      json({
        metadata: { name: `e-${l}-${r}` },
        involvedObject: { namespace: "attacked", kind: "Pod", name: "p" },
        message: "x".repeat(1000),
      }),
    ],
  }),
  flood({
    name: "namespaces that come and go",
    user: "platform",
    lanes: 10,
    request: (l, r) =>
      r % 3 === 0
        ? ["POST", "/api/v1/namespaces", json({ metadata: { name: `storm-${l}-${r}` } })]
        : r % 3 === 1
          ? ["DELETE", `/api/v1/namespaces/storm-${l}-${r - 1}`]
          : [
              "PUT",
              `/api/v1/namespaces/storm-${l}-${r - 2}/finalize`,
              json({ metadata: { name: `storm-${l}-${r - 2}` }, spec: { finalizers: [] } }),
            ],
  }),
  flood({
    name: "requests for certificates",
    user: "platform",
    cleanup: (attack) => attack.removeAll("/apis/certificates.k8s.io/v1/certificatesigningrequests"),
    request: (_l, r) => [
      "POST",
      "/apis/certificates.k8s.io/v1/certificatesigningrequests",
      json({
        metadata: { generateName: "r-" },
        spec: {
          signerName: "example.com/a",
          usages: ["client auth"],
          request: Buffer.from("-----BEGIN CERTIFICATE REQUEST-----\n".repeat(1 + (r % 2) * 5000)).toString("base64"),
        },
      }),
    ],
  }),
];

/** A token with the cluster's issuer and an invalid signature. */
function forged(name: string): string {
  const part = (object: object): string => Buffer.from(JSON.stringify(object)).toString("base64url");
  const claims = {
    iss: "https://kubernetes.default.svc.cluster.local",
    sub: `system:serviceaccount:attacked:${name}`,
    aud: ["https://kubernetes.default.svc.cluster.local"],
  };
  return `${part({ alg: "RS256", kid: "a" })}.${part(claims)}.${Buffer.alloc(256, name).toString("base64url")}`;
}
