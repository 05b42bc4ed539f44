import { startTestServer } from "../testing/start-test-server.ts";

const s = await startTestServer(undefined, ["--authorization-mode=AlwaysAllow", "--advertise-address=10.250.0.1"]);
for (const [m, p, b] of [
  ["GET", "/version"],
  ["GET", "/api"],
  ["GET", "/apis"],
  ["GET", "/api/v1/namespaces"],
  ["POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "a" }, data: { x: "1" } }],
  ["GET", "/api/v1/namespaces/default/configmaps/a"],
] as any) {
  const r = await s.request(m, p, b);
  console.log(m, p, r.code, r.text.slice(0, 400));
}
await s.stop();
process.exit(0);
