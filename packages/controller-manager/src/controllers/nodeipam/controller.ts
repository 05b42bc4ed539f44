import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isServerTimeout } from "@coxswain/apimachinery/objects/errors/predicates";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { type CidrSet, newCidrSet } from "./cidr-set.ts";

/**
 * node-controller (nodeipam): assigns every node a Pod CIDR from each of the cluster CIDRs.
 * Watches and patches Nodes.
 * Source: pkg/controller/nodeipam/ipam/range_allocator.go
 */
export function newNodeIpamController(base: ControllerContext): Runnable | undefined {
  const { ranges, serviceCidrs } = base.config.nodeIpam;
  if (ranges.length === 0) return undefined;
  const informer = base.informers.for<Node>(nodes);
  const sets = ranges.map(({ cidr, maskSize }) => newCidrSet(cidr, maskSize, base.registry));
  for (const cidr of serviceCidrs) filterOut(base, sets, cidr);
  const ctx: NodeIpamContext = { ...base, nodes: informer, sets, assigned: new Map(), reported: new Map() };
  informer.addHandler({ deleted: (node) => release(ctx, node) });
  const controller = defineController(ctx, {
    name: "cidrallocator",
    sources: [enqueueSelf(informer)],
    reconcile,
    workers: 30,
  });
  return {
    async run(signal) {
      await informer.waitForSync(signal).catch((err) => {
        if (!signal.aborted) throw err;
      });
      // All CIDRs in use must be known before the first allocation.
      for (const node of informer.lister.list()) occupy(ctx, node);
      await controller.run(signal);
    },
  };
}

interface NodeIpamContext extends ControllerContext {
  readonly nodes: SharedInformer<Node>;
  /** In the order of the cluster CIDRs. */
  readonly sets: readonly CidrSet[];
  /** CIDRs assigned to nodes that the cache does not show yet, by node uid. */
  readonly assigned: Map<string, readonly string[]>;
  /** CIDRs of nodes that were reported as outside the cluster CIDRs, by node uid. */
  readonly reported: Map<string, string>;
}

/** Reserves the part of the Pod CIDRs that overlaps the service CIDR. */
function filterOut({ log }: ControllerContext, sets: readonly CidrSet[], cidr: string): void {
  if (parseCidr(cidr) === undefined) {
    log.warn("Unsuccessful parsing of service CIDR", { cidr });
    return;
  }
  for (const set of sets) {
    try {
      set.occupy(cidr);
    } catch {
      // no overlap
    }
  }
}

function rangesOf({ spec }: Node): readonly string[] {
  return spec?.podCIDRs ?? [];
}

/**
 * Marks the node's CIDRs as used. CIDRs outside the cluster CIDRs are reported once for that node; upstream exits at
 * startup instead, here the other nodes still get theirs.
 */
function occupy(ctx: NodeIpamContext, node: Node): void {
  const { reported } = ctx;
  const { name, uid = "" } = node.metadata;
  const cidrs = rangesOf(node);
  const problems = cidrs.flatMap((cidr, i) => problemOf(ctx, node, cidr, i) ?? []);
  if (problems.length === 0 || reported.get(uid) === cidrs.join()) return;
  reported.set(uid, cidrs.join());
  ctx.log.error("cannot occupy the node's CIDRs", new Error(problems.join("; ")), { node: name });
  nodeEvent(ctx, node, "CIDRNotInRange");
}

/**
 * Marks one CIDR as used.
 * @returns error text; undefined on success
 */
function problemOf(ctx: NodeIpamContext, node: Node, cidr: string, i: number): string | undefined {
  const { sets } = ctx;
  const { name } = node.metadata;
  if (parseCidr(cidr) === undefined) return `failed to parse node ${name}, CIDR ${cidr}`;
  const set = sets[i];
  if (set === undefined)
    return `node:${name} has an allocated cidr: ${cidr} at index:${i} that does not exist in cluster cidrs configuration`;
  try {
    set.occupy(cidr);
    return undefined;
  } catch (err) {
    return `failed to mark cidr[${cidr}] at idx [${i}] as occupied for node: ${name}: ${messageOf(err)}`;
  }
}

function release(ctx: NodeIpamContext, node: Node): void {
  const { uid = "" } = node.metadata;
  const shown = rangesOf(node);
  releaseAll(ctx, shown.length > 0 ? shown : (ctx.assigned.get(uid) ?? []), node);
  ctx.assigned.delete(uid);
  ctx.reported.delete(uid);
}

function releaseAll(ctx: NodeIpamContext, cidrs: readonly string[], { metadata }: Node): void {
  const { sets } = ctx;
  for (const [i, cidr] of cidrs.entries()) {
    try {
      sets[i]?.release(cidr);
    } catch (err) {
      ctx.log.error("Error when releasing CIDR", err, { node: metadata.name, cidr });
    }
  }
}

async function reconcile(ctx: NodeIpamContext, name: string, signal: AbortSignal): Promise<Result> {
  const { assigned } = ctx;
  const node = ctx.nodes.lister.get(name);
  if (node === undefined) return done;
  const { uid = "" } = node.metadata;
  if (rangesOf(node).length > 0) {
    observeAssigned(ctx, node);
    return done;
  }
  if (assigned.has(uid)) return done; // assigned; the cache does not show it yet
  const cidrs = allocate(ctx, node);
  assigned.set(uid, cidrs);
  try {
    await assign(ctx, name, cidrs, signal);
  } catch (err) {
    nodeEvent(ctx, node, "CIDRAssignmentFailed");
    // The CIDRs of a node that was deleted meanwhile have been released and may be assigned to another node.
    if (assigned.get(uid) !== cidrs) throw err;
    assigned.delete(uid);
    // After a timeout the assignment may have succeeded. The CIDR is leaked until the next restart rather than assigned twice.
    if (!isServerTimeout(err)) releaseAll(ctx, cidrs, node);
    throw err;
  }
  ctx.log.info("Set Node PodCIDR", { node: name, cidrs: cidrs.join(",") });
  return done;
}

/** A node that has CIDRs keeps them, regardless of who assigned them. */
function observeAssigned(ctx: NodeIpamContext, node: Node): void {
  const { assigned } = ctx;
  const { uid = "" } = node.metadata;
  const own = assigned.get(uid);
  assigned.delete(uid);
  if (own !== undefined && own.join() !== rangesOf(node).join()) releaseAll(ctx, own, node);
  occupy(ctx, node);
}

/**
 * Allocates one subnet from each cluster CIDR.
 * @throws Error, after recording an Event, when one is exhausted
 */
function allocate(ctx: NodeIpamContext, node: Node): string[] {
  const cidrs: string[] = [];
  for (const [i, set] of ctx.sets.entries()) {
    try {
      cidrs.push(set.allocateNext());
    } catch (err) {
      releaseAll(ctx, cidrs, node);
      nodeEvent(ctx, node, "CIDRNotAvailable");
      throw new Error(`failed to allocate cidr from cluster cidr at idx:${i}`, { cause: err });
    }
  }
  return cidrs;
}

async function assign({ client }: ControllerContext, name: string, cidrs: readonly string[], signal: AbortSignal): Promise<void> {
  const body = { spec: { podCIDR: cidrs[0], podCIDRs: cidrs } };
  for (let tries = 1; ; tries++) {
    try {
      await client.patch(nodes, { name }, { type: "strategic", body }, { signal });
      return;
    } catch (err) {
      if (signal.aborted || tries >= maxTries) throw err;
    }
  }
}

const maxTries = 3;

function nodeEvent({ recorder }: ControllerContext, { metadata }: Node, reason: string): void {
  const { name = "", uid } = metadata;
  const node = { apiVersion: "v1", kind: "Node", name, ...(uid === undefined ? {} : { uid }) };
  recorder.event(node, "Normal", reason, `Node ${name} status is now: ${reason}`);
}
