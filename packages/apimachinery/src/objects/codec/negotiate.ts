import { notAcceptable, unsupportedMediaType } from "../errors/status-error.ts";

export const jsonMediaType = "application/json";
export const yamlMediaType = "application/yaml";
export const protobufMediaType = "application/vnd.kubernetes.protobuf";

/** In upstream's order of preference. */
const mediaTypes = [jsonMediaType, yamlMediaType, protobufMediaType] as const;

export type MediaType = (typeof mediaTypes)[number];

export interface NegotiatedOutput {
  readonly mediaType: MediaType;
  /** The requested conversion to a kind of meta.k8s.io. */
  readonly as?: "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList";
  /** Group and version of `as`: `meta.k8s.io` and `v1` or `v1beta1`. */
  readonly group?: string;
  readonly version?: string;
  /** `;pretty=1` */
  readonly pretty: boolean;
  /** `;stream=watch` */
  readonly stream: boolean;
}

export interface OutputOptions {
  /** Accept clauses with `as`. Default false: such clauses do not match. */
  readonly transforms?: boolean;
  /** Accept `as=Table` when `transforms` is set. Default true. */
  readonly tables?: boolean;
  /** Default true. "metadata": only for PartialObjectMetadata, as custom resources have no protobuf encoding. */
  readonly protobuf?: boolean | "metadata";
  /** The request is a watch, which excludes YAML. */
  readonly stream?: boolean;
}

/** Shared result for the most common case. */
const plainJson: NegotiatedOutput = { mediaType: jsonMediaType, pretty: false, stream: false };

/**
 * Chooses the representation of a response by the Accept header: the first supported clause, ordered by q-value, then by
 * specificity, then as written. JSON for a missing or empty header and for `*` + `/*`.
 * @throws StatusError 406
 * Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go
 */
export function negotiateOutput(accept: string | undefined, options: OutputOptions = {}): NegotiatedOutput {
  if (accept === undefined || accept === "" || accept === jsonMediaType) return plainJson;
  const offered = mediaTypes.filter((type) => options.protobuf !== false || type !== protobufMediaType);
  const found = firstMatch(accept, offered, options);
  if (found === undefined || (options.stream && found.mediaType === yamlMediaType)) {
    const named = options.stream ? offered.filter((t) => t !== yamlMediaType).map((t) => `${t};stream=watch`) : offered;
    throw notAcceptable(`only the following media types are accepted: ${named.join(", ")}`);
  }
  return found;
}

/** A well-formed media type with parameters. A malformed one is not supported at all. Source: Go's mime.ParseMediaType */
const wellFormed =
  /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?(?:\s*;\s*[\w!#$%&'*+.^`|~-]+\s*=\s*(?:[\w!#$%&'*+.^`|~-]+|"(?:[^"\\]|\\.)*"))*(?:\s*;)?$/;

/**
 * The media type of a request body, without parameters; JSON when there is no header.
 * @throws StatusError 415
 */
export function negotiateInput(contentType: string | undefined, options: { protobuf?: boolean } = {}): MediaType {
  if (!contentType) return jsonMediaType;
  const bare = wellFormed.test(contentType.trim()) ? contentType.split(";", 1)[0]?.trim().toLowerCase() : undefined;
  const offered = mediaTypes.filter((type) => options.protobuf !== false || type !== protobufMediaType);
  const found = offered.find((type) => type === bare);
  if (found !== undefined) return found;
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${offered.join(", ")}`,
  );
}

interface Clause {
  readonly type: string;
  readonly subtype: string;
  readonly q: number;
  readonly params: ReadonlyMap<string, string>;
}

function firstMatch(accept: string, offered: readonly MediaType[], options: OutputOptions): NegotiatedOutput | undefined {
  for (const clause of parseAccept(accept)) {
    for (const mediaType of offered) {
      const [type, subtype] = mediaType.split("/");
      const matches =
        (clause.type === type && (clause.subtype === subtype || clause.subtype === "*")) ||
        (clause.type === "*" && clause.subtype === "*");
      const output = matches ? withParams(mediaType, clause.params, options) : undefined;
      if (output !== undefined) return output;
    }
  }
  return undefined;
}

/** undefined when the clause's parameters are not supported for the media type. */
function withParams(
  mediaType: MediaType,
  params: ReadonlyMap<string, string>,
  options: OutputOptions,
): NegotiatedOutput | undefined {
  const stream = params.get("stream") ?? "";
  if (stream !== "" && (mediaType === yamlMediaType || stream !== "watch")) return undefined;
  const output = { mediaType, pretty: params.get("pretty") === "1", stream: stream !== "" };
  if (!params.has("as") && !params.has("g") && !params.has("v"))
    return mediaType === protobufMediaType && options.protobuf === "metadata" ? undefined : output;
  const as = params.get("as");
  const group = params.get("g") ?? "";
  const version = params.get("v") ?? "";
  if (!options.transforms || group !== "meta.k8s.io" || (version !== "v1" && version !== "v1beta1")) return undefined;
  if (as === "Table") {
    return mediaType === protobufMediaType || options.tables === false ? undefined : { ...output, as, group, version };
  }
  if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") return { ...output, as, group, version };
  return undefined;
}

/** Clauses of an Accept header in order of preference. Malformed ones are skipped. */
function parseAccept(header: string): Clause[] {
  const clauses: Clause[] = [];
  for (const part of header.split(",")) {
    const [range = "", ...parameters] = part.split(";");
    const types = range.trim().toLowerCase().split("/");
    const type = types[0] ?? "";
    // Old clients send a lone `*` for any type.
    if (types.length > 2 || (types.length === 1 && type !== "*")) continue;
    const params = new Map<string, string>();
    let q = 1;
    for (const parameter of parameters) {
      const equals = parameter.indexOf("=");
      if (equals < 0) continue;
      const name = parameter.slice(0, equals).trim().toLowerCase();
      const value = parameter
        .slice(equals + 1)
        .trim()
        .replace(/^"(.*)"$/, "$1");
      if (name === "q") q = Number.parseFloat(value) || 0;
      else params.set(name, value);
    }
    clauses.push({ type, subtype: types[1] ?? "*", q, params });
  }
  return clauses.sort((a, b) => b.q - a.q || wildcards(a) - wildcards(b));
}

function wildcards(clause: Clause): number {
  return (clause.type === "*" ? 2 : 0) + (clause.subtype === "*" ? 1 : 0);
}
