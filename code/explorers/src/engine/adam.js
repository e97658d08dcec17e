/** Adam (Kingma and Ba, 2015): the same steps as `torch.optim.Adam`. */
export class Adam {
  /**
   * @param {Float64Array} parameters every number that moves; changed in place
   * @param {{lr?: number, betas?: number[], eps?: number}} [options]
   */
  constructor(parameters, { lr = 1e-3, betas = [0.9, 0.999], eps = 1e-8 } = {}) {
    this.parameters = parameters;
    this.lr = lr;
    this.betas = betas;
    this.eps = eps;
    this.momentum = new Float64Array(parameters.length); // running mean of the gradient
    this.square = new Float64Array(parameters.length); // running mean of its square
    this.steps = 0;
  }

  /**
   * Move every parameter once, against its gradient.
   * @param {Float64Array} gradients in the order of the parameters
   */
  step(gradients) {
    this.steps += 1;
    const { parameters, momentum, square, eps } = this;
    const [beta1, beta2] = this.betas;
    const stepSize = this.lr / (1 - beta1 ** this.steps); // both means start at 0: correct the bias
    const rootScale = Math.sqrt(1 - beta2 ** this.steps);
    for (let i = 0; i < parameters.length; i++) {
      const gradient = gradients[i];
      momentum[i] += (1 - beta1) * (gradient - momentum[i]);
      square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
      parameters[i] -= (stepSize * momentum[i]) / (Math.sqrt(square[i]) / rootScale + eps);
    }
  }
}
