/** `coxswain token create|list|delete|generate`. */

import { readFileSync } from "node:fs";
import type { Client } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Command } from "commander";
import { authorityHash } from "../cluster/authority-hash.ts";
import { parseCertificateKey } from "../cluster/sealed-certificates.ts";
import { dayMs, newToken, newTokenText, secretNameOf, secretOf, tokenId, tokenOf, tokenRows } from "../cluster/tokens.ts";
import { Failure } from "../failure.ts";
import { adminConf, clientBy } from "../machine.ts";
import { joinLines } from "./init.ts";
import { duration, list, newCommand, printTable, withDryRun } from "./options.ts";

interface Flags {
  readonly kubeconfig: string;
  readonly dryRun: boolean;
  readonly ttl: number;
  readonly description?: string;
  readonly usages?: readonly string[];
  readonly groups?: readonly string[];
  readonly printJoinCommand: boolean;
  readonly certificateKey?: string;
}

const requestMs = 30_000;

export function tokenCommand(): Command {
  const command = newCommand("token", "Bootstrap tokens, with which machines join.");
  const sub = (name: string, description: string): Command =>
    withDryRun(newCommand(name, description)).option("--kubeconfig <file>", "of an administrator", adminConf);
  command.addCommand(
    sub("create", "Creates a token and prints it.")
      .argument("[token]", "abcdef.0123456789abcdef; default a new one")
      .option("--ttl <time>", "how long it lasts; 0: for ever", duration, dayMs)
      .option("--description <text>", "what it is for")
      .option("--usages <usages>", "signing, authentication (default: both)", list)
      .option("--groups <groups>", "groups of who authenticates with it (default: those that may join nodes)", list)
      .option("--print-join-command", "print the line to run on the other machine instead", false)
      .option("--certificate-key <key>", "with --print-join-command: for a machine of the control plane")
      .action((token: string | undefined, flags: Flags) => create(token, flags)),
  );
  command.addCommand(sub("list", "Lists the tokens.").action((flags: Flags) => show(flags)));
  command.addCommand(
    sub("delete", "Deletes tokens.")
      .argument("<token...>", "tokens or their first six characters")
      .action((tokens: string[], flags: Flags) => remove(tokens, flags)),
  );
  command.addCommand(
    newCommand("generate", "Prints a new token without creating it, for coxswain init --token.").action(() =>
      console.log(newTokenText()),
    ),
  );
  return command;
}

async function using<T>(kubeconfig: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = await clientBy(kubeconfig);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

async function create(text: string | undefined, flags: Flags): Promise<void> {
  const { ttl: ttlMs, description, usages, groups } = flags;
  const token = newToken({ token: text ?? newTokenText(), ttlMs, description, usages, groups, now: Date.now() });
  if (flags.certificateKey !== undefined) parseCertificateKey(flags.certificateKey);
  const whole = `${token.id}.${token.secret}`;
  if (flags.dryRun) return console.log(`would create Secret kube-system/${secretNameOf(token.id)}`);
  await using(flags.kubeconfig, async (client) => {
    try {
      await client.create(secrets, secretOf(token), { signal: AbortSignal.timeout(requestMs) });
    } catch (err) {
      throw new Failure(`cannot create the token: ${messageOf(err)}`);
    }
  });
  if (!flags.printJoinCommand) return console.log(whole);
  const { host, ca, caFile } = await loadKubeconfig(flags.kubeconfig);
  const authority = ca ?? readFileSync(caFile ?? "", "utf8");
  const lines = joinLines(host, whole, authorityHash(authority), flags.certificateKey);
  console.log((flags.certificateKey === undefined ? lines.at(-1) : lines[1])?.trim());
}

async function show({ kubeconfig }: Flags): Promise<void> {
  const { items } = await using(kubeconfig, (client) =>
    client.list<Secret>(
      secrets,
      { namespace: "kube-system" },
      { fieldSelector: "type=bootstrap.kubernetes.io/token", signal: AbortSignal.timeout(requestMs) },
    ),
  );
  const rows = tokenRows(
    items.flatMap((secret) => tokenOf(secret) ?? []),
    Date.now(),
  );
  printTable(rows);
}

async function remove(tokens: readonly string[], { kubeconfig, dryRun }: Flags): Promise<void> {
  const ids = tokens.map(tokenId);
  if (dryRun) return console.log(ids.map((id) => `would delete Secret kube-system/${secretNameOf(id)}`).join("\n"));
  await using(kubeconfig, async (client) => {
    for (const id of ids) {
      const target = { namespace: "kube-system", name: secretNameOf(id) };
      try {
        await client.delete(secrets, target, { signal: AbortSignal.timeout(requestMs) });
      } catch (err) {
        throw new Failure(isNotFound(err) ? `there is no token ${id}` : `cannot delete token ${id}: ${messageOf(err)}`);
      }
      console.log(`bootstrap token "${id}" deleted`);
    }
  });
}
