/** CustomResourceDefinitions, APIServices, webhook configurations and certificate signing requests. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { refToObject } from "../refusals.ts";
import { conditionOf, detail, isOlder, isSeen, type Look, oneLine, plural, type Rule, rulesFor, sinceTime } from "../rule.ts";

interface DefinitionFacts {
  readonly instances: readonly KubeObject[] | undefined;
  readonly refs: readonly ObjectRef[];
}

const definitionRules: Rule<CustomResourceDefinition, DefinitionFacts>[] = [
  ({ object: { status } }) => {
    const accepted = conditionOf(status?.conditions, "NamesAccepted");
    if (accepted?.status !== "False") return undefined;
    return {
      by: "kube-apiserver",
      reason: accepted.reason ?? "NamesNotAccepted",
      summary: `its names conflict with another definition: ${oneLine(accepted.message)}`,
      remedy: "Choose other names (plural, singular, shortNames, kind), or delete the other definition.",
      ...sinceTime(accepted.lastTransitionTime),
    };
  },
  ({ object: { status } }) => {
    const schema = conditionOf(status?.conditions, "NonStructuralSchema");
    if (schema?.status !== "True") return undefined;
    return {
      by: "kube-apiserver",
      reason: "NonStructuralSchema",
      summary: `its schema is not structural: ${oneLine(schema.message)}`,
      remedy: "Correct the schema.",
      ...sinceTime(schema.lastTransitionTime),
    };
  },
  ({ object: { status, metadata }, now }) => {
    const established = conditionOf(status?.conditions, "Established");
    if (established?.status === "True" || !isOlder(metadata.creationTimestamp, 10_000, now)) return undefined;
    return {
      by: "kube-apiserver",
      reason: "NotEstablished",
      summary: `is not served yet${detail(established?.message)}`,
      ...sinceTime(metadata.creationTimestamp),
    };
  },
];

export const definitionKind = rulesFor<CustomResourceDefinition, DefinitionFacts>({
  async gather({ spec, metadata }, reader) {
    if (!metadata.deletionTimestamp) return { instances: [], refs: [] };
    const instances = await reader.list(spec.names.plural, spec.group, "");
    const kept = (instances ?? []).toSorted(
      (a, b) => (b.metadata.finalizers?.length ?? 0) - (a.metadata.finalizers?.length ?? 0),
    );
    return { instances, refs: kept.map((one) => reader.refOf(one, spec.names.plural, spec.group)) };
  },
  deletion: [
    ({ object: { metadata, spec }, related: { instances, refs } }) => {
      if (instances === undefined || instances.length === 0) return undefined;
      return {
        by: "kube-apiserver",
        reason: "InstancesRemaining",
        summary: `is being deleted; ${plural(instances.length, "object")} of kind ${spec.names.kind} ${instances.length === 1 ? "remains" : "remain"}`,
        follow: refs,
        ...sinceTime(metadata.deletionTimestamp),
      };
    },
  ],
  rules: definitionRules,
});

interface BackedFacts {
  /** The services that the APIService or the webhooks refer to; `used` is the name of the webhook. */
  readonly services: readonly { readonly ref: ObjectRef; readonly service: Look<KubeObject>; readonly used: string }[];
}

const serviceRef = ({ namespace = "", name = "" }: { namespace?: string; name?: string }): ObjectRef =>
  refToObject("", "services", "Service", namespace, name);

const apiServiceRules: Rule<APIService, BackedFacts>[] = [
  ({ object: { status, spec }, related: { services } }) => {
    const available = conditionOf(status?.conditions, "Available");
    if (spec?.service === undefined || available?.status !== "False") return undefined;
    const { namespace, name } = spec.service;
    const [backing] = services;
    const common = { by: "kube-apiserver", ...sinceTime(available.lastTransitionTime) };
    if (backing?.service === "missing") {
      return {
        ...common,
        reason: "ServiceMissing",
        summary: `its service ${namespace}/${name} does not exist`,
        remedy:
          "Install the server of this API again, or delete the APIService: namespaces cannot be deleted while it is unavailable.",
      };
    }
    return {
      ...common,
      reason: available.reason ?? "Unavailable",
      summary: `is not available: ${oneLine(available.message)}`,
      remedy:
        "Repair the server behind its Service, or delete the APIService: namespaces cannot be deleted while it is unavailable.",
      follow: services.map(({ ref }) => ref),
    };
  },
];

export const apiServiceKind = rulesFor<APIService, BackedFacts>({
  async gather({ spec }, reader) {
    if (spec?.service === undefined) return { services: [] };
    const ref = serviceRef(spec.service);
    return { services: [{ ref, service: await reader.get("services", "", ref.namespace, ref.name), used: "" }] };
  },
  rules: apiServiceRules,
});

type Webhooks = ValidatingWebhookConfiguration | MutatingWebhookConfiguration;

export const webhooksKind = rulesFor<Webhooks, BackedFacts>({
  async gather({ webhooks = [] }, reader) {
    const services: BackedFacts["services"][number][] = [];
    for (const { name, clientConfig } of webhooks) {
      if (clientConfig.service === undefined) continue;
      const ref = serviceRef(clientConfig.service);
      services.push({ ref, service: await reader.get("services", "", ref.namespace, ref.name), used: name });
    }
    return { services };
  },
  rules: [
    ({ object: { webhooks = [], metadata }, related: { services } }) => {
      const missing = services.find(({ service }) => service === "missing");
      const webhook = webhooks.find(({ name }) => name === missing?.used);
      if (missing === undefined || webhook === undefined) return undefined;
      const ignored = webhook.failurePolicy === "Ignore";
      return {
        by: "explain",
        reason: "ServiceMissing",
        summary: `webhook ${webhook.name}: its service ${missing.ref.namespace}/${missing.ref.name} does not exist; ${ignored ? "requests pass without it (failurePolicy Ignore)" : "every request that it matches is refused (failurePolicy Fail)"}`,
        remedy: "Install the webhook's server again, or delete the webhook configuration.",
        ...sinceTime(metadata.creationTimestamp),
      };
    },
    ({ object: { metadata }, related: { services } }) => ({
      by: "explain",
      reason: "ServerNotWell",
      summary: "the server of a webhook is not healthy",
      follow: services.filter(({ service }) => isSeen(service)).map(({ ref }) => ref),
      onlyIfFollowed: true,
      ...sinceTime(metadata.creationTimestamp),
    }),
  ],
});

export const signingRequestKind = rulesFor<CertificateSigningRequest, undefined>({
  gather: async () => undefined,
  rules: [
    ({ object: { status, spec, metadata } }) => {
      const { conditions, certificate } = status ?? {};
      const denied = conditionOf(conditions, "Denied");
      const failed = conditionOf(conditions, "Failed");
      const approved = conditionOf(conditions, "Approved");
      if (denied !== undefined) {
        return {
          by: denied.reason ?? "approver",
          reason: "RequestDenied",
          summary: `was denied: ${oneLine(denied.message)}`,
          remedy: "Create a new request that its approver accepts.",
          ...sinceTime(denied.lastTransitionTime),
        };
      }
      if (failed !== undefined) {
        return {
          by: spec.signerName,
          reason: failed.reason ?? "SigningFailed",
          summary: `could not be signed: ${oneLine(failed.message)}`,
          remedy: "Create a new request that its signer accepts.",
          ...sinceTime(failed.lastTransitionTime),
        };
      }
      if (approved === undefined) {
        return {
          by: "explain",
          reason: "RequestNotApproved",
          summary: "has not been approved yet",
          remedy: `kubectl certificate approve ${metadata.name}`,
          ...sinceTime(metadata.creationTimestamp),
        };
      }
      if (certificate) return undefined;
      return {
        by: "explain",
        reason: "SignerSilent",
        summary: `is approved, but its signer ${spec.signerName} has not issued a certificate`,
        remedy: "Check that a controller for this signer runs.",
        ...sinceTime(approved.lastTransitionTime),
      };
    },
  ],
});
