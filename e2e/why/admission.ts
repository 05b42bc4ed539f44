import { deployment, manifest, restrictedDeployment, type Situation } from "./situation.ts";

const webhooks = (name: string): ReturnType<typeof manifest> =>
  manifest("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", `why-${name}`, {
    webhooks: [
      {
        name: "w.why.example.com",
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        clientConfig: { service: { namespace: `why-${name}`, name: "gone" } },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        namespaceSelector: { matchLabels: { "why.example.com/webhook": name } },
      },
    ],
  });

/** Webhooks and quotas. */
export const admissionSituations: readonly Situation[] = [
  {
    name: "webhook-away",
    labels: { "why.example.com/webhook": "webhook-away" },
    objects: [webhooks("webhook-away"), deployment()],
    args: ["deployment/web"],
    phrase: /admission webhook w\.why\.example\.com cannot be called/,
    undo: [["delete", "validatingwebhookconfiguration", "why-webhook-away"]],
  },
  {
    name: "webhook-itself",
    objects: [webhooks("webhook-itself")],
    args: ["validatingwebhookconfiguration/why-webhook-itself"],
    phrase:
      /webhook w\.why\.example\.com: its service why-webhook-itself\/gone does not exist; every request that it matches is refused/,
    undo: [["delete", "validatingwebhookconfiguration", "why-webhook-itself"]],
  },
  {
    name: "quota-demands",
    ...restrictedDeployment("quota-demands", "cores", { "requests.cpu": "1" }),
    args: ["deployment/web"],
    phrase: /quota cores demands that every container specifies requests\.cpu/,
    quick: true,
  },
  {
    name: "limit-range",
    objects: [
      manifest("v1", "LimitRange", "small", { spec: { limits: [{ type: "Container", max: { cpu: "100m" } }] } }),
      deployment({ resources: { limits: { cpu: "2" } } }),
    ],
    args: ["deployment/web"],
    phrase: /a LimitRange of the namespace forbids it: maximum cpu usage per Container is 100m/,
  },
  {
    name: "pod-security",
    labels: { "pod-security.kubernetes.io/enforce": "restricted" },
    objects: [deployment()],
    args: ["deployment/web"],
    phrase: /pod security level restricted\S* of the namespace forbids it/,
  },
];
