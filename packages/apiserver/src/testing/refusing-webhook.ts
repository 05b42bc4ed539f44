import type { WebhookClientConfig } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { TestServer } from "./start-test-server.ts";

/**
 * Registers the webhook `<name>.example.com` for creates of `resource` and creates objects until it is called.
 * @param resource plural name in the core group
 * @returns the message of the rejection
 */
export async function refusalByWebhook(
  server: Pick<TestServer, "request">,
  name: string,
  resource: string,
  clientConfig: WebhookClientConfig,
): Promise<string> {
  await server.request("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig,
        rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: [resource] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      },
    ],
  });
  const create = () => server.request("POST", `/api/v1/namespaces/default/${resource}`, { metadata: { generateName: "x-" } });
  const refused = await waitFor(async () => [await create()].find(({ code }) => code !== 201), { what: "a refusal" });
  return refused.body.message;
}
