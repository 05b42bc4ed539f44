#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { createServer } from "node:tls";
import { parseArgs } from "node:util";
import { newClient } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { wholeNumber } from "./cluster/number-flag.ts";
import { FakeNodes } from "./nodes/fake-nodes.ts";
import { usualAnswers } from "./nodes/kubelet/usual-answers.ts";

const help = `Nodes without containers for a running cluster: their pods are ready at once; those that are not restarted end well after 1 s.

Usage: fake-nodes --kubeconfig FILE --nodes N [options]

  --kubeconfig FILE       of the API server, of a user who may write nodes, their leases and pods
  --nodes N               how many: node-1, node-2, …
  --address ADDRESS       of all of them; the API server asks for logs and exec there (default 127.0.0.1)
  --port PORT             (default 10250)
  --tls-cert-file FILE    certificate of that port
  --tls-private-key-file FILE
  --client-ca-file FILE   clients of that port need a certificate of it
  --client-name NAME      and this common name
  --help                  prints this

Exit codes: 1 it cannot listen or read a file, 2 wrong usage.
`;

const files = ["kubeconfig", "tls-cert-file", "tls-private-key-file", "client-ca-file", "client-name"] as const;
const options = {
  ...(Object.fromEntries(files.map((name) => [name, { type: "string" }])) as Record<(typeof files)[number], { type: "string" }>),
  nodes: { type: "string" },
  address: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "10250" },
  help: { type: "boolean", default: false },
} as const;

process.exitCode = await run(process.argv.slice(2));

/** @returns the exit code */
async function run(args: readonly string[]): Promise<number> {
  let given: ReturnType<typeof read>;
  try {
    given = read(args);
  } catch (err) {
    process.stderr.write(`fake-nodes: ${(err as Error).message}\nSee --help.\n`);
    return 2;
  }
  if (given === "help") {
    process.stdout.write(help);
    return 0;
  }
  const stopping = new AbortController();
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  try {
    const { address, port, nodes, file } = given;
    const log = newLogger({ verbosity: 0, clock: realClock });
    const client = newClient({ ...(await loadKubeconfig(file("kubeconfig"))), qps: -1, userAgent: userAgentOf("fake-nodes") });
    const specs = Array.from({ length: nodes }, (_, index) => ({ name: `node-${index + 1}` }));
    const all = new FakeNodes({
      ...{ client, clock: realClock, log, signal: stopping.signal, nodes: specs, rules: [usualAnswers] },
      kubelet: { address, port },
    });
    const tls = {
      cert: readFileSync(file("tls-cert-file")),
      key: readFileSync(file("tls-private-key-file")),
      ca: readFileSync(file("client-ca-file")),
      requestCert: true,
    };
    const server = createServer(tls, (socket) => {
      socket.on("error", () => socket.destroy());
      if (socket.getPeerCertificate().subject?.CN === file("client-name")) all.answer(socket);
      else socket.destroy();
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, address, resolve);
    });
    await Promise.race([all.start(), ended]);
    log.info("fake nodes are ready", { nodes, address, port });
    await ended;
    stopping.abort(new Error("fake-nodes ends"));
    all.stop();
    client.close();
    // Open streams of followed logs would keep the process alive.
    process.exit(0);
  } catch (err) {
    process.stderr.write(`fake-nodes: ${(err as Error).message}\n`);
    return 1;
  }
}

/** @throws Error for an invalid command line */
function read(args: readonly string[]) {
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) return "help";
  const missing = [...files, "nodes" as const].find((name) => !values[name]);
  if (missing !== undefined) throw new Error(`--${missing} is missing`);
  if (isIP(values.address) === 0) throw new Error(`--address: ${JSON.stringify(values.address)} is not an IP address`);
  return {
    file: (name: (typeof files)[number]): string => values[name] as string,
    address: values.address,
    nodes: wholeNumber("nodes", values.nodes as string, 5_000),
    port: wholeNumber("port", values.port, 65_535),
  };
}
