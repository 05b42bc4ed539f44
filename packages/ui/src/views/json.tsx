import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { cutLine } from "../model/ansi.ts";
import { kindOf } from "../model/kinds.ts";
import type { ObjectPath } from "../model/route.ts";
import type { Row } from "../model/row.ts";
import { useApp } from "../parts/app.ts";
import { Lines } from "./lines.tsx";

interface JsonViewProps {
  readonly object: ObjectPath;
  readonly row: Row | undefined;
}

/** The object as the API server has it, without who wrote which field. Read again when its row changes. */
export function JsonView({ object, row }: JsonViewProps): JSX.Element {
  const { api } = useApp();
  const [lines, setLines] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      const found = await api.get<Record<string, unknown>>(await pathOfObject(api, object, stop.signal), stop.signal);
      setLines(JSON.stringify(found, shown, 2).split("\n").map(cutLine));
      setProblem("");
    };
    read().catch((err: unknown) => {
      if (!stop.signal.aborted) setProblem(err instanceof Error ? err.message : String(err));
    });
    return () => stop.abort();
  }, [api, object.resource, object.namespace, object.name, row]);
  if (problem !== "") return <p class="note">{problem}</p>;
  return <Lines label="JSON" lines={lines} isFollowed={false} draw={(line) => line} />;
}

const shown = (key: string, value: unknown): unknown => (key === "managedFields" ? undefined : value);

interface ApiGroup {
  readonly preferredVersion: { readonly groupVersion: string };
}

/** Asks discovery where objects are that the page does not follow, such as custom ones. */
async function pathOfObject(
  api: { get<T>(path: string, signal: AbortSignal): Promise<T> },
  { resource, namespace, name }: ObjectPath,
  signal: AbortSignal,
): Promise<string> {
  const dot = resource.indexOf(".");
  const [plural, group] = dot < 0 ? [resource, ""] : [resource.slice(0, dot), resource.slice(dot + 1)];
  const prefix =
    kindOf(resource)?.api ??
    (group === ""
      ? "/api/v1"
      : `/apis/${(await api.get<ApiGroup>(`/apis/${encodeURIComponent(group)}`, signal)).preferredVersion.groupVersion}`);
  const scope = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${prefix}${scope}/${encodeURIComponent(plural)}/${encodeURIComponent(name)}`;
}
