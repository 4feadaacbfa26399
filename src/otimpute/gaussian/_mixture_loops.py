"""The compiled loops of mixtures of Gaussians: rows completed and weighed, sums over rows, draws.

Components lie side by side in vectors of `WIDTH` numbers (`_lanes`), so that what is done for one is done for eight.
"""

from __future__ import annotations

import numpy as np

from .._compile import compiled
from .._lanes import WIDTH, exp, larger, largest, load, log, root, rounded, smaller, spread, store, total

FAR_BELOW = -1e300  # a log density that no row has
_NEGLIGIBLE = 1e-6  # share of a row below which a component learns nothing from it
_NO_SHARE = 1e-15  # of a row: not even drawn by chance
_SMALLEST_PIVOT = 1e-30

# Of sums in whole numbers: steps to a unit near a component and far from it, up to where, and steps of a share. A row adds 2³⁸
# at most, so that float64 holds every sum over `ROWS_SUMMED` rows.
NEAR_STEPS, FAR_STEPS, SHARE_STEPS = 2.0**16, 2.0**10, 2.0**18
_NEAR, _FAR = 8.0, 512.0
ROWS_SUMMED = 1 << 14


@compiled
def _four_rows(top, places, first, width):  # type: ignore[no-untyped-def]
    """Where four rows of a matrix begin, those at the places from ``first`` on; past the last one, the last one again."""
    last = places.shape[0] - 1
    r0, r1 = places[first], places[min(first + 1, last)]
    r2, r3 = places[min(first + 2, last)], places[min(first + 3, last)]
    return top + r0 * width, top + r1 * width, top + r2 * width, top + r3 * width


@compiled
def _four_products(matrix, row0, row1, row2, row3, index, vector, first, begin, end):  # type: ignore[no-untyped-def]
    """Products of four rows with a vector: four sums that do not wait for each other."""
    sum0, sum1, sum2, sum3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    for k in range(begin, end):
        x, at = load(vector, first + k), index[k]
        sum0 += load(matrix, row0 + at) * x
        sum1 += load(matrix, row1 + at) * x
        sum2 += load(matrix, row2 + at) * x
        sum3 += load(matrix, row3 + at) * x
    return sum0, sum1, sum2, sum3


@compiled
def _weigh(filled, missing, rows, mean, precision, log_weight, places, n_missing, begin, factor, away, part):  # type: ignore[no-untyped-def]
    """Complete rows as each component would, find how much of a row each has (``part``), and fill in the expectation."""
    d, n_blocks, n = filled.shape[1], log_weight.shape[0], rows.shape[0]
    seen, solved = np.empty((d + 3, WIDTH)), np.empty((d + 3, WIDTH))
    zero, one, half = spread(0.0), spread(1.0), spread(0.5)
    straight = np.arange(d)
    free = 0
    for i in range(n):
        q, other, is_same = 0, d, i > 0
        for j in range(d):
            is_missing = missing[rows[i], j]
            is_same &= is_missing == missing[rows[max(i, 1) - 1], j]
            if is_missing:
                places[i, q] = j
                q += 1
        for j in range(d - 1, -1, -1):
            if not missing[rows[i], j]:
                other -= 1
                places[i, other] = j
        n_missing[i], begin[i] = q, begin[i - 1] if is_same else free
        if not is_same:
            free += n_blocks * (q * (q + 1) // 2)
    for block in range(n_blocks):  # outermost: a block of large precisions stays in the cache
        top = block * d * d
        log_missing = zero
        for i in range(n):
            q, p = n_missing[i], d - n_missing[i]
            place, seen_place = places[i, :q], places[i, q:]
            first, here = begin[i] + block * (q * (q + 1) // 2), (i * n_blocks + block) * d
            if i == 0 or begin[i] != begin[i - 1] or q != n_missing[i - 1]:
                log_missing, product = zero, one
                for c in range(q):
                    to_c = first + c * (c + 1) // 2
                    pivot = load(precision, top + place[c] * d + place[c])
                    for k in range(c):
                        pivot -= load(factor, to_c + k) * load(factor, to_c + k)
                    pivot = larger(pivot, spread(_SMALLEST_PIVOT))
                    product *= pivot
                    scale = one / root(pivot)
                    store(factor, to_c + c, scale)
                    for r in range(c + 1, q, 4):
                        r1, r2, r3 = min(r + 1, q - 1), min(r + 2, q - 1), min(r + 3, q - 1)
                        t0, t1, t2, t3 = r * (r + 1) // 2, r1 * (r1 + 1) // 2, r2 * (r2 + 1) // 2, r3 * (r3 + 1) // 2
                        t0, t1, t2, t3 = first + t0, first + t1, first + t2, first + t3
                        s0, s1, s2, s3 = _four_products(factor, t0, t1, t2, t3, straight, factor, to_c, 0, c)
                        column = top + place[c]
                        store(factor, t0 + c, (load(precision, column + place[r] * d) - s0) * scale)
                        store(factor, t1 + c, (load(precision, column + place[r1] * d) - s1) * scale)
                        store(factor, t2 + c, (load(precision, column + place[r2] * d) - s2) * scale)
                        store(factor, t3 + c, (load(precision, column + place[r3] * d) - s3) * scale)
                    if c % 8 == 7 or c == q - 1:  # a logarithm is work, and a product of all pivots may overflow
                        log_missing += half * log(product)
                        product = one
            for a in range(p):
                x = spread(filled[rows[i], seen_place[a]]) - load(mean, block * d + seen_place[a])
                store(seen, a, x)
                store(away, here + seen_place[a], x)
            for a in range(p, p + 3):
                store(seen, a, zero)
            distance = zero
            for a in range(0, p, 4):
                l0, l1, l2, l3 = _four_rows(top, seen_place, a, d)
                s0, s1, s2, s3 = _four_products(precision, l0, l1, l2, l3, seen_place, seen, 0, 0, a)
                t0, t1, t2, t3 = _four_products(precision, l0, l1, l2, l3, seen_place, seen, 0, a, min(a + 4, p))
                distance += (s0 + half * t0) * load(seen, a) + (s1 + half * t1) * load(seen, a + 1)
                distance += (s2 + half * t2) * load(seen, a + 2) + (s3 + half * t3) * load(seen, a + 3)
            for r in range(0, q, 4):
                l0, l1, l2, l3 = _four_rows(top, place, r, d)
                s0, s1, s2, s3 = _four_products(precision, l0, l1, l2, l3, seen_place, seen, 0, 0, p)
                store(solved, r, s0)
                store(solved, r + 1, s1)
                store(solved, r + 2, s2)
                store(solved, r + 3, s3)
            for r in range(q):
                to_r = first + r * (r + 1) // 2
                along = load(solved, r)
                for k in range(r):
                    along -= load(factor, to_r + k) * load(solved, k)
                along *= load(factor, to_r + r)
                distance -= half * along * along
                store(solved, r, along)
            for r in range(q - 1, -1, -1):
                along = load(solved, r)
                for k in range(q - 1, r, -1):
                    along -= load(factor, first + k * (k + 1) // 2 + r) * load(solved, k)
                along *= load(factor, first + r * (r + 1) // 2 + r)
                store(solved, r, along)
                store(away, here + place[r], zero - along)
            store(part, i * n_blocks + block, load(log_weight, block) - log_missing - distance)
    for i in range(n):
        first = i * n_blocks
        highest = FAR_BELOW
        for block in range(n_blocks):
            highest = max(highest, largest(load(part, first + block)))
        whole = zero
        for block in range(n_blocks):
            share = exp(load(part, first + block) - spread(highest))
            store(part, first + block, share)
            whole += share
        scale = one / spread(total(whole))
        for block in range(n_blocks):
            store(part, first + block, load(part, first + block) * scale)
        for r in range(n_missing[i]):
            expected = spread(0.0)
            for block in range(n_blocks):
                j = places[i, r]
                completed = load(mean, block * d + j) + load(away, (first + block) * d + j)
                expected += load(part, first + block) * completed
            filled[rows[i], places[i, r]] = total(expected)


@compiled
def _invert(factor, first, q, inverse, column, straight):  # type: ignore[no-untyped-def]
    """The conditional covariance of ``q`` missing entries, from the ``factor`` that `weigh_rows` left behind.

    Z = (L Lᵀ)⁻¹ from L's last column to the first: Zᵣc = −Σ Zᵣₖ Lₖc / Lcc over k > c, and Zcc has 1 / Lcc² besides.
    """
    zero = spread(0.0)
    for c in range(q - 1, -1, -1):
        scale = load(factor, first + c * (c + 1) // 2 + c)
        for k in range(c + 1, q):
            store(column, k, load(factor, first + k * (k + 1) // 2 + c) * scale)
        for r in range(c + 1, q, 4):
            r1, r2, r3 = min(r + 1, q - 1), min(r + 2, q - 1), min(r + 3, q - 1)
            s0, s1, s2, s3 = _four_products(inverse, r * q, r1 * q, r2 * q, r3 * q, straight, column, 0, c + 1, q)
            store(inverse, c * q + r, zero - s0)
            store(inverse, c * q + r1, zero - s1)
            store(inverse, c * q + r2, zero - s2)
            store(inverse, c * q + r3, zero - s3)
        entry = scale * scale
        for k in range(c + 1, q):
            entry -= load(inverse, c * q + k) * load(column, k)
            store(inverse, k * q + c, load(inverse, c * q + k))
        store(inverse, c * q + c, entry)


@compiled
def _add_rows(n, places, n_missing, begin, factor, away, part, drift, scatter, mass):  # type: ignore[no-untyped-def]
    """Add up what each component has of ``n`` rows: distances from its mean, their products (lower triangle), and shares."""
    n_blocks, d = mass.shape[0], places.shape[1]
    straight, sharing = np.arange(d), np.empty(n, np.int64)
    inverse, column = np.empty((d * d, WIDTH)), np.empty((d, WIDTH))
    zero = spread(0.0)
    for block in range(n_blocks):
        top = block * d * d
        n_sharing = 0
        weight = zero
        for i in range(n):
            share = load(part, i * n_blocks + block)
            if largest(share) >= _NEGLIGIBLE:
                sharing[n_sharing] = i
                n_sharing += 1
                weight += share
            q = n_missing[i]
            if i + 1 < n and begin[i + 1] == begin[i] and n_missing[i + 1] == q:
                continue  # rows of one pattern add the same conditional covariance: together
            if largest(weight) > 0.0:
                _invert(factor, begin[i] + block * (q * (q + 1) // 2), q, inverse, column, straight)
                place = places[i]
                for c in range(q):
                    for k in range(c, q):
                        at = top + place[k] * d + place[c]
                        store(scatter, at, load(scatter, at) + weight * load(inverse, c * q + k))
            weight = zero
        for i in range(0, n_sharing, 4):  # four rows at a time, so that sums are fetched from memory less often
            i0, i1, i2, i3 = _four_rows(block, sharing[:n_sharing], i, n_blocks)
            w0 = load(part, i0)
            w1 = load(part, i1) if i + 1 < n_sharing else zero
            w2 = load(part, i2) if i + 2 < n_sharing else zero
            w3 = load(part, i3) if i + 3 < n_sharing else zero
            store(mass, block, load(mass, block) + w0 + w1 + w2 + w3)
            i0, i1, i2, i3 = i0 * d, i1 * d, i2 * d, i3 * d
            for a in range(d):
                x0, x1 = w0 * load(away, i0 + a), w1 * load(away, i1 + a)
                x2, x3 = w2 * load(away, i2 + a), w3 * load(away, i3 + a)
                store(drift, block * d + a, load(drift, block * d + a) + x0 + x1 + x2 + x3)
                row = top + a * d
                for b in range(a + 1):
                    entry = load(scatter, row + b) + x0 * load(away, i0 + b) + x1 * load(away, i1 + b)
                    store(scatter, row + b, entry + x2 * load(away, i2 + b) + x3 * load(away, i3 + b))


@compiled
def weigh_rows(  # type: ignore[no-untyped-def]
    filled, missing, rows, ends, row_weight, mean, precision, log_weight, places, n_missing, begin, factor, away, part,
    drift, scatter, mass,
):  # fmt: skip
    """Complete rows as each component would, find how much of a row each has (``part``), and fill in the expectation.

    This is done chunk by chunk, each of which ends where ``ends`` says. Sums over rows are added to ``drift``, ``scatter`` and
    ``mass``, unless these are empty, as `_add_rows` does; rows count as often as their ``row_weight`` says, unless it is empty.

    Left behind of the last chunk, row by row: its ``places`` (columns of the ``n_missing`` missing entries, then of the
    others), ``away`` (how far from the component's mean the completed row is) and, from ``begin`` on, the Cholesky ``factor``
    of the precision's block of the missing entries, with the reciprocals of the diagonal. Neighbours with the same pattern
    share the factor.
    """
    n_blocks = log_weight.shape[0]
    first = 0
    for end in ends:
        chunk = rows[first:end]
        n = chunk.shape[0]
        _weigh(filled, missing, chunk, mean, precision, log_weight, places, n_missing, begin, factor, away, part)
        if mass.shape[0] > 0:
            for i in range(n if row_weight.shape[0] > 0 else 0):
                for block in range(n_blocks):
                    weighed = load(part, i * n_blocks + block) * spread(row_weight[chunk[i]])
                    store(part, i * n_blocks + block, weighed)
            _add_rows(n, places, n_missing, begin, factor, away, part, drift, scatter, mass)
        first = end


@compiled
def _add_products(grid, chosen, n_chosen, width, top, products):  # type: ignore[no-untyped-def]
    """Add the products of entries (lower triangle) of the chosen rows, four at a time; ``chosen`` has three more, of zeros."""
    for i in range(0, n_chosen, 4):
        i0, i1, i2, i3 = chosen[i] * width, chosen[i + 1] * width, chosen[i + 2] * width, chosen[i + 3] * width
        for a in range(width):
            x0, x1, x2, x3 = load(grid, i0 + a), load(grid, i1 + a), load(grid, i2 + a), load(grid, i3 + a)
            row = top + a * width
            for b in range(a + 1):
                entry = load(products, row + b) + x0 * load(grid, i0 + b) + x1 * load(grid, i1 + b)
                store(products, row + b, entry + x2 * load(grid, i2 + b) + x3 * load(grid, i3 + b))


@compiled
def add_whole_rows(n, places, n_missing, begin, factor, away, part, steps, near, far, conditional):  # type: ignore[no-untyped-def]
    """What `_add_rows` does, in whole numbers, so that the order of rows changes nothing.

    The products are of rows (1, distances from the mean), each times the root of the share. Rounded row by row to
    `NEAR_STEPS`, or `FAR_STEPS` where an entry in any of the lanes is beyond `_NEAR`; entries beyond `_FAR` count as that.
    Conditional covariances are rounded to ``steps`` of each component and column.
    """
    d = places.shape[1]
    n_blocks, width = steps.shape[0] // d, d + 1
    straight, grid = np.arange(d), np.empty(((n + 1) * width, WIDTH))
    is_near, is_far = np.empty(n + 3, np.int64), np.empty(n + 3, np.int64)
    inverse, column = np.empty((d * d, WIDTH)), np.empty((d, WIDTH))
    zero = spread(0.0)
    for a in range(width):
        store(grid, n * width + a, zero)
    for block in range(n_blocks):
        n_near, n_far = 0, 0
        weight = zero
        for i in range(n):
            share = load(part, i * n_blocks + block)
            if largest(share) >= _NEGLIGIBLE:
                half, here = root(share), (i * n_blocks + block) * d
                furthest = half
                for a in range(d):
                    x = half * load(away, here + a)
                    furthest = larger(furthest, larger(x, zero - x))
                    store(grid, i * width + 1 + a, x)
                store(grid, i * width, half)
                unit = NEAR_STEPS
                if largest(furthest) > _NEAR:
                    unit = FAR_STEPS
                    is_far[n_far] = i
                    n_far += 1
                else:
                    is_near[n_near] = i
                    n_near += 1
                for a in range(width):
                    x = smaller(larger(load(grid, i * width + a), spread(-_FAR)), spread(_FAR))
                    store(grid, i * width + a, rounded(x * spread(unit)))
                weight += rounded(share * spread(SHARE_STEPS))
            q = n_missing[i]
            if i + 1 < n and begin[i + 1] == begin[i] and n_missing[i + 1] == q:
                continue
            if largest(weight) > 0.0:
                _invert(factor, begin[i] + block * (q * (q + 1) // 2), q, inverse, column, straight)
                place = places[i]
                for c in range(q):
                    for k in range(c, q):
                        at = (block * d + place[k]) * d + place[c]
                        entry = load(inverse, c * q + k) * load(steps, block * d + place[k]) * load(steps, block * d + place[c])
                        store(conditional, at, load(conditional, at) + weight * rounded(entry))
            weight = zero
        is_near[n_near : n_near + 3], is_far[n_far : n_far + 3] = n, n
        _add_products(grid, is_near, n_near, width, block * width * width, near)
        _add_products(grid, is_far, n_far, width, block * width * width, far)


@compiled
def draw_rows(filled, rows, mean, chance, noise, places, n_missing, begin, factor, away, part):  # type: ignore[no-untyped-def]
    """Replace what `weigh_rows` filled in by draws less their expectation: a component by ``chance``, then its Gaussian."""
    d = filled.shape[1]
    n_blocks = mean.shape[0] // d
    drawn = np.empty(d)
    for i in range(rows.shape[0]):
        q, place, row = n_missing[i], places[i], rows[i]
        chosen, below = -1, 0.0
        for k in range(n_blocks * WIDTH):
            share = part[i * n_blocks + k // WIDTH, k % WIDTH]
            if share > _NO_SHARE and (chosen < 0 or below < chance[row]):
                chosen, below = k, below + share
        block, lane = chosen // WIDTH, chosen % WIDTH
        first, here = begin[i] + block * (q * (q + 1) // 2), (i * n_blocks + block) * d
        # With L Lᵀ the precision of the missing entries, L⁻ᵀ z has their covariance.
        for r in range(q - 1, -1, -1):
            drawn[r] = noise[row, place[r]]
            for k in range(r + 1, q):
                drawn[r] -= factor[first + k * (k + 1) // 2 + r, lane] * drawn[k]
            drawn[r] *= factor[first + r * (r + 1) // 2 + r, lane]
        for r in range(q):
            j = place[r]
            filled[row, j] = mean[block * d + j, lane] + away[here + j, lane] + drawn[r] - filled[row, j]
