/**
 * Conversion strategy Webhook: sends a ConversionReview with all objects that are not in the requested version. A webhook may
 * change labels and annotations, but no other metadata.
 * Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go
 */

import { randomUUID } from "node:crypto";
import { parseLargeJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { CustomResourceConversion, WebhookClientConfig } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { validateAnnotations, validateLabels } from "@coxswain/apimachinery/objects/validation/object-meta";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type Convert, renameOnly } from "./conversion.ts";

/** Posts a review to a webhook and resolves with the response body. */
type CallWebhook = (
  config: WebhookClientConfig,
  question: { readonly body: string; readonly timeoutSeconds: number },
) => Promise<Buffer>;

const timeoutSeconds = 30;

/** The converter of a definition. Webhook failures are thrown as a Status 500 that names the kind. */
export function converterOf(conversion: CustomResourceConversion | undefined, callWebhook: CallWebhook, turns: Turns): Convert {
  const { strategy, webhook } = conversion ?? { strategy: "None" };
  if (strategy !== "Webhook" || !webhook) return renameOnly;
  return (objects, apiVersion) => {
    const differing = objects.filter((object) => object.apiVersion !== apiVersion);
    if (differing.length === 0) return [...objects];
    return convertByWebhook(differing, apiVersion).then((converted) => {
      const next = converted.values();
      return objects.map((object) => (object.apiVersion === apiVersion ? object : next.next().value!));
    });
  };

  async function convertByWebhook(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const subject = `conversion webhook for ${kindOf(objects[0]!)}`;
    const version = (webhook?.conversionReviewVersions ?? []).find((one) => one === "v1" || one === "v1beta1");
    if (version === undefined) throw plainError("no supported conversion review versions");
    const review = { kind: "ConversionReview", apiVersion: `apiextensions.k8s.io/${version}` };
    const request = { uid: randomUUID(), desiredAPIVersion: apiVersion, objects };
    const body = await turns.run(encodeJsonTextInSteps({ ...review, request }));
    let converted: readonly unknown[];
    try {
      const answer = await callWebhook(webhook?.clientConfig ?? {}, { body, timeoutSeconds });
      const given = await turns.run(parseLargeJson(answer));
      await turns.next();
      converted = convertedIn(given, review, request.uid);
    } catch (err) {
      throw plainError(`${subject} failed: ${messageOf(err)}`, { cause: err });
    }
    if (converted.length !== objects.length) {
      throw plainError(`${subject} returned ${converted.length} objects, expected ${objects.length}`);
    }
    return converted.map((object, i) => checked(objects[i]!, object, { apiVersion, subject, i }));
  }
}

/** Formats like GroupVersionKind.String() in Go. */
function kindOf({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): string {
  return `${String(apiVersion ?? "")}, Kind=${String(kind ?? "")}`;
}

interface Review {
  readonly kind: string;
  readonly apiVersion: string;
}

/** Objects in the response of a webhook. @throws Error when the review is invalid or reports a failure */
function convertedIn(review: unknown, wanted: Review, uid: string): readonly unknown[] {
  if (!isJsonObject(review)) throw new Error("the response is not a JSON object");
  // v1beta1 requires neither a matching kind nor a matching uid.
  const isStrict = wanted.apiVersion.endsWith("/v1");
  if (!isStrict) return resultOf(review["response"]);
  if (review["kind"] !== wanted.kind || review["apiVersion"] !== wanted.apiVersion) {
    throw new Error(`expected webhook response of ${kindOf(wanted)}, got ${kindOf(review)}`);
  }
  const { response } = review;
  if (isJsonObject(response) && response["uid"] !== uid) {
    throw new Error(`expected response.uid=${goQuote(uid)}, got ${goQuote(String(response["uid"] ?? ""))}`);
  }
  return resultOf(response);
}

/** @throws Error when the result is not Success */
function resultOf(response: unknown): readonly unknown[] {
  if (!isJsonObject(response)) throw new Error("no response provided");
  const result = isJsonObject(response["result"]) ? response["result"] : {};
  if (result["status"] !== "Success") {
    const { message } = result;
    if (typeof message === "string" && message !== "") throw new Error(message);
    throw new Error(`response.result.status was '${result["status"] ?? ""}', not 'Success'`);
  }
  const { convertedObjects } = response;
  return Array.isArray(convertedObjects) ? convertedObjects : [];
}

interface Place {
  readonly apiVersion: string;
  readonly subject: string;
  readonly i: number;
}

/** Validates a converted object. @throws Error for changes that a webhook must not make */
function checked(original: KubeObject, converted: unknown, { apiVersion, subject, i }: Place): KubeObject {
  const fail = (why: string): Error => plainError(`${subject} returned invalid object at index ${i}: ${why}`);
  if (!isJsonObject(converted)) throw fail("it is not an object");
  const object = converted as unknown as KubeObject; // cast: apiVersion, kind and metadata are checked below; the caller checks the rest by the schema
  if (object.apiVersion !== apiVersion || parseGroupVersion(apiVersion) === undefined) {
    throw fail(`invalid groupVersion (expected ${apiVersion}, received ${object.apiVersion ?? ""})`);
  }
  if (object.kind !== original.kind) throw fail(`invalid kind (expected ${original.kind}, received ${object.kind ?? ""})`);
  const { metadata }: { metadata?: unknown } = object;
  if (!isJsonObject(metadata)) {
    const why = metadata === undefined ? "missing metadata in converted object" : "invalid metadata in converted object";
    throw plainError(`${subject} returned invalid metadata: ${why}`);
  }
  for (const [name, field] of [
    ["name", "name"],
    ["namespace", "namespace"],
    ["UID", "uid"],
  ] as const) {
    const [was, is] = [original.metadata[field] ?? "", String(metadata[field] ?? "")];
    if (was !== is) throw plainError(`${subject} returned invalid object: must have the same ${name}: ${was} != ${is}`);
  }
  return { ...object, metadata: restored(original, metadata, subject) };
}

/** The original metadata with the labels and annotations returned by the webhook. */
function restored(original: KubeObject, given: Record<string, unknown>, subject: string): KubeObject["metadata"] {
  const metadata: Record<string, unknown> = { ...original.metadata };
  const fail = (why: string): Error => plainError(`${subject} returned invalid metadata: ${why}`);
  for (const { field, validate } of [
    { field: "labels", validate: validateLabels },
    { field: "annotations", validate: validateAnnotations },
  ] as const) {
    const map = given[field];
    if (map === undefined || map === null) {
      delete metadata[field];
      continue;
    }
    if (!isJsonObject(map)) throw fail(`invalid metadata.${field} in converted object`);
    const other = Object.entries(map).find(([, value]) => typeof value !== "string");
    if (other !== undefined) throw fail(`metadata.${field}[${other[0]}] must be a string in converted object`);
    const errors = validate(map as Record<string, string>, `metadata.${field}`); // cast: the lines above refuse values that are no strings
    if (errors.length > 0) throw fail(formatFieldErrors(errors));
    metadata[field] = map;
  }
  return metadata;
}
