import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { unpackedPackage } from "../framework/debian.ts";
import { settings } from "../framework/kubectl.ts";
import { importImages, type Machine } from "./machine.ts";
import { type Network, newNetwork } from "./network.ts";

/** The archive's program, before the links to it are made. */
export const coxswain = "/opt/coxswain/bin/coxswain";
export const admin = "/etc/kubernetes/admin.conf";
export const minutes = (n: number): number => n * 60_000;

/** A cluster that `coxswain init` and `join` made of machines on one network. */
export class MachineCluster {
  readonly network: Network;
  readonly #machines = new Map<string, { readonly machine: Machine; readonly address: string }>();
  readonly #folder = mkdtempSync(join(tmpdir(), "cox-kept-"));
  /** Copies of files, by `machine:path`. */
  readonly #kept = new Map<string, string>();
  #next = 11;

  private constructor(network: Network) {
    this.network = network;
  }

  static async start(options: Parameters<typeof newNetwork>[0] = {}): Promise<MachineCluster> {
    return new MachineCluster(await newNetwork(options));
  }

  async remove(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    await this.network.remove();
  }

  machine(name: string): Machine {
    return this.#named(name).machine;
  }

  address(name: string): string {
    return this.#named(name).address;
  }

  /** As a machine that is lost. */
  async kill(name: string): Promise<void> {
    await this.machine(name).kill();
    this.#machines.delete(name);
  }

  /** Boots machines with etcdctl and kubectl; they belong to no cluster yet. Their addresses follow one another. */
  async boot(...names: string[]): Promise<void> {
    const client = join(unpackedPackage("etcd-client"), "usr/bin/etcdctl");
    const kubectl = await findKubectl(settings);
    const booted = names.map(async (name) => {
      const number = this.#next++;
      const machine = await this.network.boot(name, number);
      cpSync(client, machine.path("/usr/bin/etcdctl"));
      cpSync(kubectl, machine.path("/usr/bin/kubectl"));
      this.#machines.set(name, { machine, address: this.network.address(number) });
    });
    await Promise.all(booted);
  }

  /** By the API server of a machine of the control plane. */
  kubectl(name: string, ...args: string[]): Promise<string> {
    // The one in the file may be a name that only machines resolve.
    return this.machine(name).kubectl(admin, `--server=https://${this.address(name)}:6443`, ...args);
  }

  /** The first machine of the control plane. @returns what init printed */
  init(name: string, ...flags: string[]): Promise<string> {
    return this.machine(name).run(coxswain, "init", ...flags);
  }

  /** Further machines of the control plane, one after the other. @param by a machine of the control plane */
  async joinControlPlane(by: string, ...names: string[]): Promise<void> {
    const printed = await this.machine(by).run(coxswain, "init", "--upload-certs");
    const [line] = linesIn(printed).filter((words) => words.includes("--control-plane"));
    for (const name of names) await this.machine(name).run(coxswain, ...(line as string[]));
  }

  /** Nodes, with images for their pods. */
  async joinNodes(by: string, ...names: string[]): Promise<void> {
    const line = await this.machine(by).run(coxswain, "token", "create", "--print-join-command");
    await Promise.all(
      names.map(async (name) => {
        await this.machine(name).run(coxswain, ...line.trim().split(" ").slice(1));
        await importImages(this.machine(name));
      }),
    );
  }

  whenReady(by: string, ...names: string[]): Promise<unknown> {
    return Promise.all(
      names.map((name) =>
        waitFor(async (seen) => new RegExp(`^${name} +Ready `, "m").test(seen(await this.kubectl(by, "get", "nodes"))), {
          timeoutMs: minutes(3),
          retry: hasExitCode,
          what: `${name} to be ready`,
        }),
      ),
    );
  }

  #named(name: string): { readonly machine: Machine; readonly address: string } {
    const found = this.#machines.get(name);
    assert.ok(found, `no machine ${name}`);
    return found;
  }

  /** Copies a file of a machine to another one, which may be lost meanwhile. */
  copy(path: string, from: string, to: string, target = path): void {
    cpSync(this.#kept.get(`${from}:${path}`) ?? this.machine(from).path(path), this.machine(to).path(target));
  }

  /** As somebody who copies files of a machine elsewhere, for the time when it is gone. */
  keep(name: string, ...paths: string[]): void {
    for (const path of paths) {
      const copy = join(this.#folder, `${this.#kept.size}`);
      cpSync(this.machine(name).path(path), copy);
      this.#kept.set(`${name}:${path}`, copy);
    }
  }
}

/** The join lines that `init` prints, as words after `coxswain`. */
const linesIn = (output: string): string[][] =>
  output
    .split("\n")
    .filter((line) => line.startsWith("  coxswain join "))
    .map((line) => line.trim().split(" ").slice(1));
