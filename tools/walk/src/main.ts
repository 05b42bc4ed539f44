import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { newClient, type Target, targetOfKubeconfig } from "./client.ts";
import { describe, walk } from "./walk.ts";

const usage = `usage: node tools/walk/src/main.ts (--kubeconfig <file> | --url <url> [--token <token>] [--ca <file>]) [options]

Sends generated requests to an API server and prints each answer that breaks a rule.

  --seed <n>    the requests follow from it (default 1)
  --count <n>   how many (default 3000)
  --from <n>    the number of the first one (default 0)

Exit codes: 0 no findings, 1 findings.
`;

const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string" },
    url: { type: "string" },
    token: { type: "string" },
    ca: { type: "string" },
    seed: { type: "string", default: "1" },
    count: { type: "string", default: "3000" },
    from: { type: "string", default: "0" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const client = newClient(target());
const report = await walk(client, { seed: Number(values.seed), count: Number(values.count), from: Number(values.from) });
client.close();
for (const finding of report.findings) console.log(describe(finding));
console.log(`seed ${values.seed}: ${report.sent} requests, ${JSON.stringify(report.codes)}, ${report.findings.length} findings`);
process.exitCode = report.findings.length === 0 ? 0 : 1;

function target(): Target {
  if (values.kubeconfig !== undefined) return targetOfKubeconfig(values.kubeconfig);
  if (values.url === undefined) throw new Error("--kubeconfig or --url must be given");
  return {
    url: values.url,
    ...(values.token !== undefined && { token: values.token }),
    ...(values.ca !== undefined && { ca: readFileSync(values.ca) }),
  };
}
