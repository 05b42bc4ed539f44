import type { Client } from "@coxswain/apimachinery/client/client";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { events } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { storageFolder } from "@coxswain/apiserver/storage/key-layout";
import { changesBetween } from "./changes.ts";
import type { ObjectTarget } from "./target.ts";
import type { Write, WriteLog } from "./write-log.ts";

/** Number of writes shown, the last ones of the history. */
const mostWrites = 25;

/** Explains an object's state: its writes, its events, and the server's explanation. */
export async function storyOf(
  ref: ResourceRef,
  target: ObjectTarget,
  { client, writes, startMs }: { readonly client: Client; readonly writes: WriteLog | undefined; readonly startMs: number },
): Promise<string> {
  const parts = [
    section("What happened", writesText(ref, target, writes, startMs)),
    section("Events", await eventsText(client, ref, target, startMs)),
    section("Why (as `kubectl why` says)", await explanationText(client, ref, target)),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Time since the start of the cluster: `+12.345s`. */
export const since = (startMs: number, atMs: number): string => `+${((atMs - startMs) / 1000).toFixed(3)}s`;

function section(title: string, text: string): string {
  return text === "" ? "" : `${title}:\n${text.replaceAll(/^(?=.)/gm, "  ")}`;
}

function writesText(ref: ResourceRef, { namespace, name }: ObjectTarget, writes: WriteLog | undefined, startMs: number): string {
  if (writes === undefined) return "";
  const key = `/registry/${storageFolder({ ...ref, resource: ref.resource })}/${ref.namespaced ? `${namespace}/` : ""}${name}`;
  const all = writes.of(key);
  if (all.length === 0) return "no write of it was seen";
  const reported = all.slice(-mostWrites);
  const cut = all.length > reported.length ? [`… ${all.length - reported.length} writes before`] : [];
  return [...cut, ...reported.map((write) => writeText(write, startMs))].join("\n");
}

function writeText({ atMs, by, type, value, before }: Write, startMs: number): string {
  const who = by === undefined ? "the store itself" : `${by.by} (${by.method})`;
  const what = type === "delete" ? "deleted" : before === undefined ? "created" : "changed";
  const head = `${since(startMs, atMs)} ${what} by ${who}`;
  if (type === "delete" || before === undefined) return head;
  return [head, ...changesBetween(parsed(before), parsed(value)).map((line) => `    ${line}`)].join("\n");
}

function parsed(value: Buffer | undefined): unknown {
  try {
    return JSON.parse(String(value));
  } catch {
    return undefined; // encrypted, or in protobuf
  }
}

async function eventsText(client: Client, ref: ResourceRef, { namespace, name }: ObjectTarget, startMs: number): Promise<string> {
  const fieldSelector = `involvedObject.kind=${ref.kind},involvedObject.name=${name}`;
  try {
    const { items } = await client.list<Event & Unstructured>(events, ref.namespaced ? { namespace } : {}, { fieldSelector });
    const timed = items.map((event) => ({ event, atMs: Date.parse(event.eventTime ?? event.lastTimestamp ?? "") }));
    return timed
      .sort((a, b) => a.atMs - b.atMs)
      .slice(-mostWrites)
      .map(({ event, atMs }) => {
        const { type, reason, message, count = 1, source, reportingComponent } = event;
        const times = count > 1 ? ` (${count} times)` : "";
        const when = Number.isNaN(atMs) ? "" : `${since(startMs, atMs)} `;
        return `${when}${type} ${reason} from ${source?.component || reportingComponent || "unknown"}${times}: ${message}`;
      })
      .join("\n");
  } catch (err) {
    return `cannot be read: ${String(err)}`;
  }
}

async function explanationText(client: Client, ref: ResourceRef, { namespace, name }: ObjectTarget): Promise<string> {
  const resource = ref.group === "" ? ref.resource : `${ref.resource}.${ref.group}`;
  const path = `/debug/explain/${ref.namespaced ? `namespaces/${namespace}/` : ""}${resource}/${name}`;
  try {
    const { status, body } = await client.raw("GET", path, { headers: { accept: "text/plain" } });
    return status === 200 ? body.toString("utf8").trimEnd() : "";
  } catch {
    return ""; // must not replace the failure of the assertion
  }
}
