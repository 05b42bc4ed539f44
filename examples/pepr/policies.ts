import { a, Capability } from "pepr";

export const Policies = new Capability({
  name: "policies",
  description: "Deployments have an owner, and their images a version",
});

Policies.When(a.Deployment)
  .IsCreatedOrUpdated()
  .Mutate((deployment) => {
    if (!deployment.HasLabel("owner")) deployment.SetLabel("owner", deployment.Request.userInfo.username ?? "nobody");
  })
  .Validate((deployment) => {
    const containers = deployment.Raw.spec?.template.spec?.containers ?? [];
    const bad = containers.find(({ image = "" }) => !image.includes(":") || image.endsWith(":latest"));
    return bad === undefined ? deployment.Approve() : deployment.Deny(`${bad.image}: the image needs a version`);
  });
