import { writeFileSync } from "node:fs";
import { startTestServer } from "../testing/start-test-server.ts";

const s = await startTestServer(undefined, ["--advertise-address=10.250.0.1", ...(process.env.G_FLAGS?.split(" ") ?? [])]);
const dir = process.env.G_DIR!;
const cfg = {
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "c", cluster: { server: s.url, "certificate-authority-data": Buffer.from(s.ca).toString("base64") } }],
  users: [{ name: "u", user: { token: s.adminToken } }],
  contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  "current-context": "x",
};
writeFileSync(dir + "/kubeconfig", JSON.stringify(cfg));
console.log("serving", s.url);
process.on("SIGTERM", () => s.stop().then(() => process.exit(0)));
setInterval(() => {}, 1000);
