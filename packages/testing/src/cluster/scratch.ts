import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Tokens of the cluster's users. */
export interface Tokens {
  readonly admin: string;
  readonly controllers: string;
  readonly scheduler: string;
  readonly nodes: string;
}

/** Files that flags of the programs name, in a folder that is removed with the cluster. */
export interface Scratch {
  readonly folder: string;
  readonly tokens: Tokens;
  readonly tokenFile: string;
  /** Path of the key that signs service account tokens, with the contents of `serviceAccountKeyPem`. */
  readonly serviceAccountKey: string;
  readonly serviceAccountKeyPem: string;
  file(name: string, text: string): string;
  remove(): void;
}

const users: Readonly<Record<keyof Tokens, string>> = {
  admin: "kubernetes-admin",
  controllers: "system:kube-controller-manager",
  scheduler: "system:kube-scheduler",
  nodes: "fake-nodes",
};

/** @param serviceAccountKeyPem key of the cluster that is copied, so that the tokens in its Secrets are valid in both */
export function newScratch(serviceAccountKeyPem = newKeyPem()): Scratch {
  const folder = mkdtempSync(join(tmpdir(), "coxswain-testing-"));
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const names = Object.keys(users) as (keyof Tokens)[];
  const tokens = Object.fromEntries(names.map((name) => [name, randomBytes(16).toString("hex")])) as unknown as Tokens;
  const lines = names.map((name) => `${tokens[name]},${users[name]},${name},"system:masters"\n`);
  return {
    folder,
    tokens,
    tokenFile: file("tokens.csv", lines.join("")),
    serviceAccountKey: file("sa.key", serviceAccountKeyPem),
    serviceAccountKeyPem,
    file,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function newKeyPem(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}
