/** Controller in IngressClasses. */
export const controllerName = "services.coxswain/ingress";
/** The IngressClass that is made. */
export const className = "coxswain";
