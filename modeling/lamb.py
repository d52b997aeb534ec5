"""LAMB, an optimizer for very large batches (You et al. 2020, "Large Batch Optimization
for Deep Learning: Training BERT in 76 minutes").
"""

import tensorflow as tf

from modeling import optimization


class Lamb(optimization.AdamWeightDecay):
    """Adam whose step is as long as the weight, times the learning rate.

    Algorithm 2 with phi the identity. For the moments m and v of Adam with bias
    correction, weight w and rate lr: u = m / (sqrt(v) + epsilon) + weight_decay w;
    w -= lr ||w|| / ||u|| u, with the norms of each weight by itself. Where one of them
    is 0 the ratio is 1, so that weights that start from 0 can leave it.

    LayerNorms and biases (`optimization.NO_DECAY`) take the step of Adam, without decay
    and without the ratio. Algorithm 2 knows no exceptions; these, and the ratio of 1,
    are those of the authors' code (tensorflow_addons, where what does not decay is not
    adapted either). That code, like ours, has no bounds for ||w||, which the paper's
    phi may set. ALBERT's LAMB leaves out the bias correction.

    Arguments and methods are those of AdamWeightDecay. The moments have other names, so
    that neither goes on from a checkpoint of the other.
    """

    prefix = "lamb"

    def __init__(self, weights, schedule, *, bias_correction=True, **options):
        super().__init__(weights, schedule, bias_correction=bias_correction, **options)

    def _update(self, weight, m, v, gradient, step):
        if step.decay is None:
            super()._update(weight, m, v, gradient, step)
            return
        # At rate 0 it moves the moments alone, in one pass.
        still = step._replace(rate=0.0, epsilon=1.0, decay=None)
        super()._update(weight, m, v, gradient, still)
        direction = step.correction * m / (tf.sqrt(v) + step.epsilon)
        direction += step.decay * weight
        ratio = tf.math.divide_no_nan(tf.norm(weight), tf.norm(direction))
        ratio = tf.where(ratio > 0, ratio, 1.0)  # 0 where one of the norms is 0
        weight.assign_sub(step.rate * ratio * direction)
