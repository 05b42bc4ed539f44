import { decodeObject } from "@coxswain/apimachinery/objects/codec/codec";
import { encodeUntyped } from "@coxswain/apimachinery/objects/codec/json";
import { plainError, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { formatGroupVersion, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { admissionAttributes } from "./admission.ts";
import { inputMediaType, readBody } from "./body.ts";
import type { Call } from "./env.ts";
import { deleteOptions } from "./options.ts";

interface Deletion {
  readonly options: DeleteOptions;
  readonly dryRun: boolean;
  /** Runs admission for an object that is to be deleted. */
  readonly admit: (old: KubeObject) => Promise<void>;
}

/** Reads what a delete of an object or of a collection asks for. @throws as `readDeleteOptions` */
export async function readDelete(call: Call): Promise<Deletion> {
  const options = await readDeleteOptions(call);
  const dryRun = (options.dryRun ?? []).length > 0;
  return {
    options,
    dryRun,
    // Both kinds of plugins run, although nothing can be mutated. Source: rest.AdmissionToValidateObjectDeleteFunc
    async admit(old) {
      const attributes = admissionAttributes(call, "DELETE", undefined, old, { dryRun, options });
      await call.env.admission.mutate(attributes);
      await call.env.admission.validate(attributes);
    },
  };
}

/**
 * DeleteOptions from the body when there is one, else from the query. For a single object the kind may be of any group
 * version; for a collection, of a built-in group.
 * @throws Invalid, UnsupportedMediaType; 500 without a reason, as upstream, for a malformed body
 * Source: k8s.io/apiserver pkg/endpoints/handlers/delete.go
 */
async function readDeleteOptions(call: Call): Promise<DeleteOptions> {
  const bytes = await readBody(call);
  if (bytes.length === 0) return deleteOptions(call.ctx.query, undefined);
  const mediaType = inputMediaType(call);
  let body: DeleteOptions;
  try {
    body = decodeObject(
      bytes,
      mediaType,
      { group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" },
      { asExpected: true },
    ).object;
  } catch (err) {
    throw err instanceof StatusError && err.code === 400 ? plainError(err.message) : err;
  }
  checkKind(call, body);
  call.ctx.audit?.requestObject(undefined, () =>
    encodeUntyped({ ...body, kind: "DeleteOptions", apiVersion: body.apiVersion || "v1" }),
  );
  return deleteOptions(call.ctx.query, body);
}

const registries = {
  one: "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27",
  collection: "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30",
};

/** Groups whose kinds upstream registers in separate schemes. */
const keptApart = new Set(["meta.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"]);

/**
 * Upstream decodes the two cases with different schemes, which its errors name. Custom resources use
 * the scheme of single objects.
 */
function checkKind({ name, served }: Call, body: DeleteOptions): void {
  const apiVersion = body.apiVersion ?? "";
  const kind = body.kind || "DeleteOptions";
  const isCollection = name === "" && served.definition.custom !== true;
  const gv = apiVersion === "" ? served.kind : parseGroupVersion(apiVersion);
  if (gv === undefined) throw plainError(`unexpected GroupVersion string: ${apiVersion}`);
  const isRegistered =
    scheme.kind({ group: gv.group, version: gv.version, kind }) !== undefined &&
    (!keptApart.has(gv.group) || gv.group === served.kind.group);
  if (kind === "DeleteOptions" && (isRegistered || !isCollection)) return;
  if (isRegistered && (isCollection || kind === "Status")) {
    throw plainError(`converting (${gv.version}.${kind}) to (v1.DeleteOptions): unknown conversion`);
  }
  const registry = registries[isCollection ? "collection" : "one"];
  throw plainError(
    `no kind ${goQuote(kind)} is registered for version ${goQuote(formatGroupVersion(gv))} in scheme "${registry}"`,
  );
}
