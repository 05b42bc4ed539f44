/** What `cluster.client` is given to name a resource: `pods`, `deployments`, … */
export * from "@coxswain/apimachinery/objects/schema/kinds/resources";
