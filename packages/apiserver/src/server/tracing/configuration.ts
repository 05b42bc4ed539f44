import { existsSync, readFileSync } from "node:fs";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { type FieldError, formatFieldErrors, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

export interface TracingConfiguration {
  /** Address of an OTLP collector as a gRPC target: `localhost:4317`, `unix:///run/otel.sock`. */
  readonly endpoint: string;
  /** Number of sampled requests per million. */
  readonly samplingRatePerMillion: number;
}

const most = 1_000_000;

interface TracingFile {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly endpoint?: unknown;
  readonly samplingRatePerMillion?: unknown;
}

/**
 * Reads --tracing-config-file.
 * @throws Error with the validation error
 * Source: k8s.io/apiserver pkg/tracing/config.go, pkg/server/options/tracing.go
 */
export function readTracingConfiguration(path: string): TracingConfiguration {
  if (!existsSync(path)) throw new Error(`tracing-config-file ${path} does not exist`);
  const failed = (why: string): Error =>
    new Error(`failed to read tracing config: unable to decode tracing configuration data: ${why}`);
  let file: unknown;
  try {
    file = parseYaml(readFileSync(path, "utf8"));
  } catch (err) {
    throw failed(messageOf(err));
  }
  const { apiVersion, kind, endpoint, samplingRatePerMillion: rate }: TracingFile = file ?? {};
  if (kind !== "TracingConfiguration" || apiVersion !== "apiserver.config.k8s.io/v1alpha1")
    throw failed(`no kind ${JSON.stringify(kind ?? "")} is registered for version ${JSON.stringify(apiVersion ?? "")}`);
  if (endpoint !== undefined && endpoint !== null && typeof endpoint !== "string") throw failed("endpoint is not a string");
  if (rate !== undefined && rate !== null && !Number.isSafeInteger(rate))
    throw failed("samplingRatePerMillion is not an integer");
  const read = {
    endpoint: endpoint ?? "localhost:4317",
    samplingRatePerMillion: typeof rate === "number" ? rate : 0,
  };
  const errors = tracingErrors(read);
  if (errors.length > 0) throw new Error(`failed to validate tracing configuration: ${formatFieldErrors(errors)}`);
  return read;
}

function tracingErrors({ endpoint, samplingRatePerMillion: rate }: TracingConfiguration): FieldError[] {
  const errors: FieldError[] = [];
  if (rate < 0) errors.push(invalidValue("samplingRatePerMillion", rate, "sampling rate must be positive"));
  if (rate > most)
    errors.push(
      invalidValue("samplingRatePerMillion", rate, "sampling rate per million must be less than or equal to one million"),
    );
  const named = endpoint.includes("//") ? endpoint : `dns://${endpoint}`;
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(named)?.[1]?.toLowerCase() ?? "";
  if (!["dns", "unix", "unix-abstract"].includes(scheme)) {
    const options = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md";
    errors.push(invalidValue("endpoint", named, `unsupported scheme: ${scheme}.  ${options}`));
  }
  return errors;
}
